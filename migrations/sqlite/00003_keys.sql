-- A natural key is a hash, so each new one changed a page somewhere in the whole of natural_key. New
-- keys are written one behind the other here, are known in memory, and move over in the order of
-- their hashes once they are many.

-- +goose Up
create table fresh_key (
    n       integer primary key,
    scope   integer not null,
    hash    blob    not null,
    content blob    not null,
    object  blob    not null,
    at      integer not null
);
alter table natural_key drop column nonce;

-- +goose Down
alter table natural_key add column nonce integer not null default 0;
insert into natural_key (scope, hash, content, object, at)
select scope, hash, content, object, at from fresh_key where true order by n
on conflict (scope, hash) do update set content = excluded.content, object = excluded.object, at = excluded.at;
drop table fresh_key;
