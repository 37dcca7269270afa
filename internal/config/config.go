// Package config reads settings strictly: the hub's own from file, environment and flags, and
// the YAML trees of others, with the line of every value, the origin of every setting, and no
// secret in anything that prints.
package config

import (
	"time"
)

// Profile says which engines carry the pipeline.
type Profile string

// The profiles (DESIGN §4).
const (
	Embedded Profile = "embedded"
	Postgres Profile = "postgres"
	Full     Profile = "full"
)

// Config holds the hub's own settings. Paths are relative to the working directory or absolute.
type Config struct {
	Profile      Profile
	Data         string // directory
	AS2          AS2
	Admin        Admin
	Postgres     PostgresStore
	RabbitMQ     RabbitMQ
	Lease        time.Duration // how long a node may be silent before others take over
	Stages       Stages
	PartnersFile string
	Limits       Limits
	Log          Log

	origins  Origins
	warnings []Warning
}

// AS2 is the listener that partners reach.
type AS2 struct {
	Listen     string // host:port; port 0 picks a free one
	PublicURL  string // what partners call us by; where asynchronous MDNs come to
	MaxMessage int64  // bytes on the wire
	TLS        TLS
}

// TLS names the files of a listener; empty means plain HTTP.
type TLS struct {
	Cert     string // PEM file, the chain in order
	Key      string // PEM file
	ClientCA string // PEM file; set: clients must present a certificate of these
}

// Enabled reports whether the listener speaks TLS.
func (t TLS) Enabled() bool { return t.Cert != "" }

// Admin is the listener of API and console.
type Admin struct {
	Listen   string
	TLS      TLS
	Hosts    []string // names that a Host header may carry beside the address itself
	Insecure bool     // plain HTTP away from loopback is meant
}

// PostgresStore is where the profiles postgres and full keep everything.
type PostgresStore struct {
	URL      Secret // holds the password
	Schema   string
	Insecure bool // an unverified connection away from loopback is meant
}

// RabbitMQ is the broker of the profile full.
type RabbitMQ struct {
	URL      Secret   // holds the password
	MoreURLs []Secret // further nodes of the cluster
	Prefix   string   // of every queue name
	Shards   int      // ordered queues a stage
	Insecure bool     // plain AMQP away from loopback is meant
}

// Stages are the pools of this node.
type Stages struct {
	Parser, Validator, Router, Sender Stage
}

// Stage sets one pool. Counts are for each node.
type Stage struct {
	Workers int
	Min     int           // the scaler goes no lower
	Max     int           // nor higher
	Timeout time.Duration // for one message
}

// Limits keep one caller from taking all of the hub (DESIGN G7).
type Limits struct {
	InFlightPartner int64         // bytes being received from one partner at the same time
	InFlightSource  int64         // bytes being received from one source address
	InFlightTotal   int64         // bytes being received in all
	Requests        int           // requests at the same time on the AS2 listener
	MaxHeader       int64         // bytes of the HTTP header
	HeaderTimeout   time.Duration // until the HTTP header is complete
	BodyTimeout     time.Duration // until the body is complete
	IdleTimeout     time.Duration // of a kept connection
	MinBodyRate     int64         // bytes a second below which a body is cut off
	MinFreeDisk     int64         // bytes; below it the hub answers 503
	Outbox          int           // messages waiting while the broker is away; above it the hub is not ready
}

// Log sets what is logged.
type Log struct {
	Level  string // debug | info | warn | error
	Format string // auto | json | text; auto is text on a terminal
}

// Options of Load.
type Options struct {
	File  string            // empty: none
	Env   []string          // as os.Environ gives it
	Flags map[string]string // by key ("as2.listen") or by flag name ("as2-listen"); only those that were given
}
