window.YTD.direct_messages.part0 = [
 {"dmConversation": {"conversationId": "42-77", "messages": [
  {"messageCreate": {"recipientId": "77", "reactions": [{"senderId": "77", "reactionKey": "like"}], "urls": [], "text": "Ahoy", "mediaUrls": [], "senderId": "42", "id": "900", "createdAt": "2024-03-05T10:00:00.000Z"}},
  {"joinConversation": {"initiatingUserId": "1"}}
 ]}}
]