-- Sessions begun before the owner's pages had a host of their own: other programs may have been sent them.

DELETE FROM registry WHERE kind = 'session';
