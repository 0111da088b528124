window.YTD.account.part0 = [
  {"account": {"email": "ida@example.org", "createdVia": "web", "username": "ida_l", "accountId": "42", "createdAt": "2010-01-01T00:00:00.000Z", "accountDisplayName": "Ida"}}
]