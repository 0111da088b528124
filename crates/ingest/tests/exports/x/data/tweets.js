window.YTD.tweets.part0 = [
 {"tweet": {"id_str": "100", "id": "100", "full_text": "Tides &amp; boats https://t.co/abc", "created_at": "Tue Mar 05 10:00:00 +0000 2024", "favorite_count": "3", "retweet_count": "1", "lang": "en", "entities": {"urls": [{"url": "https://t.co/abc", "expanded_url": "https://tide.example/7", "indices": ["15", "32"]}]}, "extended_entities": {"media": [{"media_url_https": "https://pbs.example/a.jpg"}]}}},
 {"tweet": {"id_str": "101", "full_text": "@noor yes", "created_at": "Wed Mar 06 10:00:00 +0000 2024", "in_reply_to_status_id_str": "99", "in_reply_to_screen_name": "noor", "favorite_count": "0", "retweet_count": "0"}},
 {"tweet": {"id_str": "102", "full_text": "RT @noor: knots", "created_at": "Wed Mar 06 11:00:00 +0000 2024", "favorite_count": "0", "retweet_count": "0"}},
 {"tweet": {"full_text": "without an id"}}
]