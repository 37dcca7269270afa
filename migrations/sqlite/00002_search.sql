-- An index on a hash alone changes a page of its own for each row, somewhere in the whole of it, and
-- each page that a commit touches is written to the log in full. In buckets of 256 rows, in the
-- order in which they came, the rows of a commit share one or two pages; a search looks into each
-- bucket from the newest to the oldest.

-- +goose Up
drop index transmission_message;
drop index interchange_ref;
drop index message_document;
drop index message_order;
drop index delivery_ref;
create index transmission_message on transmission (n >> 8, message_h) where message_h is not null;
create index interchange_ref on interchange (n >> 8, ref_h) where ref_h is not null;
create index message_document on message (n >> 8, document_h) where document_h is not null;
create index message_order on message (n >> 8, order_h) where order_h is not null;
create index delivery_ref on delivery (n >> 8, ref_h) where ref_h is not null;

-- +goose Down
drop index transmission_message;
drop index interchange_ref;
drop index message_document;
drop index message_order;
drop index delivery_ref;
create index transmission_message on transmission (message_h) where message_h is not null;
create index interchange_ref on interchange (ref_h) where ref_h is not null;
create index message_document on message (document_h) where document_h is not null;
create index message_order on message (order_h) where order_h is not null;
create index delivery_ref on delivery (ref_h) where ref_h is not null;
