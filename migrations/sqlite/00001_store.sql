-- Every table keeps an object whole in the column data (a compact form that only the program
-- reads) and beside it the columns that are searched or that change on their own. Text that is
-- searched is indexed by a 64-bit hash (…_h), because small keys keep an index in few pages, and
-- each page that a commit touches is written to the log in full. Times are nanoseconds of Unix
-- time, 0 where there is none.

-- +goose Up
create table setting (
    name  text primary key,
    value blob not null
) without rowid;

create table lane (
    id      integer primary key,
    stage   integer not null,
    name    text    not null,
    ordered integer not null,
    policy  text    not null,
    next    integer not null,
    tail    integer not null,
    waiting integer not null,
    paused  integer not null,
    profile integer not null,
    unique (stage, name)
);

-- state is the number of store.WorkState. busy is 1 while a later row of the same key must wait
-- for this one. wake is the time of a retry or the end of a lease. died is set for dead letters.
create table work (
    stage   integer not null,
    id      blob    not null,
    lane    integer not null,
    seq     integer not null,
    gen     integer not null,
    state   integer not null,
    busy    integer not null,
    key     text    not null,
    topic   text    not null,
    handed  integer not null,
    since   integer not null,
    wake    integer,
    died    integer,
    partner text,
    code    text,
    data    blob    not null,
    primary key (stage, id)
) without rowid;
-- Each index holds only the rows that wait; a row that is ready and handed over is in none.
create index work_unhanded on work (lane, seq) where state = 1 and handed = 0;
create index work_parked on work (lane, seq) where state = 2;
create index work_wake on work (wake) where wake is not null;
create index work_busy on work (lane, key, seq) where busy = 1;
create index work_keyheld on work (lane, seq) where state = 5;
create index work_died on work (id) where died is not null;

create table natural_key (
    scope   integer not null,
    hash    blob    not null,
    content blob    not null,
    object  blob    not null,
    at      integer not null,
    nonce   integer not null, -- tells the insert that won
    primary key (scope, hash)
) without rowid;

create table number (
    sequence text primary key,
    next     integer not null
) without rowid;

-- kind: 0 data is the content, 1 data is the content compressed with zstd, 2 a file holds it.
create table body (
    n    integer primary key,
    hash blob    not null unique,
    size integer not null,
    kind integer not null,
    data blob
);

create table transmission (
    n          integer primary key,
    id         blob    not null unique,
    state      text    not null,
    sender     text    not null,
    receiver   text    not null,
    connection text    not null,
    transport  text    not null,
    message_h  integer,
    at         integer not null,
    data       blob    not null
);
create index transmission_message on transmission (message_h) where message_h is not null;

create table interchange (
    n            integer primary key,
    id           blob    not null unique,
    transmission blob    not null,
    position     integer not null,
    state        text    not null,
    open         integer not null,
    sender       text    not null,
    receiver     text    not null,
    standard     text    not null,
    test         integer not null,
    ref_h        integer,
    at           integer not null,
    data         blob    not null
);
create index interchange_ref on interchange (ref_h) where ref_h is not null;
create index interchange_transmission on interchange (transmission, position);

create table message (
    n           integer primary key,
    id          blob    not null unique,
    interchange blob    not null,
    position    integer not null,
    state       text    not null,
    code        text    not null,
    sender      text    not null,
    receiver    text    not null,
    type        text    not null,
    test        integer not null,
    document_h  integer,
    order_h     integer,
    delivery    blob,
    at          integer not null,
    data        blob    not null
);
create index message_interchange on message (interchange, position);
create index message_document on message (document_h) where document_h is not null;
create index message_order on message (order_h) where order_h is not null;

create table delivery (
    n          integer primary key,
    id         blob    not null unique,
    state      text    not null,
    sender     text    not null,
    receiver   text    not null,
    partner    text    not null,
    connection text    not null,
    type       text    not null,
    ref_h      integer,
    at         integer not null,
    data       blob    not null
);
create index delivery_ref on delivery (ref_h) where ref_h is not null;

create table event (
    object blob    not null,
    n      integer not null,
    at     integer not null,
    name   text    not null,
    detail text,
    who    text,
    primary key (object, n)
) without rowid;

-- +goose Down
drop table event;
drop table delivery;
drop table message;
drop table interchange;
drop table transmission;
drop table body;
drop table number;
drop table natural_key;
drop table work;
drop table lane;
drop table setting;
