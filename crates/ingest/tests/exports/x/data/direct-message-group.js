window.YTD.direct_message_group.part0 = [
 {"dmConversation": {"conversationId": "555", "messages": [
  {"conversationNameUpdate": {"initiatingUserId": "42", "name": "Crew", "createdAt": "2018-03-06T10:00:00.000Z"}},
  {"messageCreate": {"text": "Charts https://t.co/c", "urls": [{"url": "https://t.co/c", "expanded": "https://chart.example/1"}], "senderId": "42", "id": "901", "createdAt": "2018-03-05T10:00:00.000Z"}}
 ]}}
]
