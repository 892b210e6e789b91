-- +goose Up

-- The person or the mail address that a rate limit's key is about, empty where it is about neither: erasing a person
-- removes all keys of these subjects. Releases before this one leave it empty.
ALTER TABLE rate_key ADD COLUMN subject TEXT NOT NULL DEFAULT '';
CREATE INDEX rate_key_subject ON rate_key (subject) WHERE subject <> '';

-- day/password/pair/ADDRESS/NETWORK, invitation/email/COMPANY/ADDRESS, and PURPOSE/person/SUBJECT.
UPDATE rate_key SET subject = substr(key, 19, instr(substr(key, 19), '/') - 1) WHERE key LIKE 'day/password/pair/%/%';
UPDATE rate_key SET subject = substr(substr(key, 18), instr(substr(key, 18), '/') + 1) WHERE key LIKE 'invitation/email/%/%';
UPDATE rate_key SET subject = substr(key, instr(key, '/person/') + 8) WHERE key LIKE '%/person/%' AND subject = '';
