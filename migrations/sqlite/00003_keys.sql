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

-- +goose Down
insert into natural_key (scope, hash, content, object, at, nonce)
select scope, hash, content, object, at, 0 from fresh_key where true order by n
on conflict (scope, hash) do update set content = excluded.content, object = excluded.object, at = excluded.at;
drop table fresh_key;
