window.YTD.tweets.part0 = [
 {"tweet": {"id_str": "101", "full_text": "@noor yes", "created_at": "Wed Mar 06 10:00:00 +0000 2024", "in_reply_to_status_id_str": "99", "favorite_count": "5", "retweet_count": "0"}},
 {"tweet": {"id_str": "103", "full_text": "New", "created_at": "Thu Mar 07 10:00:00 +0000 2024", "favorite_count": "0", "retweet_count": "0"}}
]