package config

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// canary stands in every secret and must come out of nothing.
const canary = "C4N4RY"

func TestNoPrintOutHoldsASecret(t *testing.T) {
	t.Parallel()
	c, origins, err := Load(Options{
		File: write(t, "edihub.yaml", "rabbitmq: {more_urls: ['amqp://u:"+canary+"@localhost', 'amqp://u:"+canary+"2@localhost']}\n"),
		Env:  []string{"EDIHUB_POSTGRES_URL=postgres://u:" + canary + "@localhost/x"},
		Flags: map[string]string{
			"rabbitmq-url": "amqp://u:" + canary + "@localhost",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	// Every secret setting must hold the canary, so that a new one cannot be forgotten here.
	for _, f := range c.fields() {
		switch s := f.target.(type) {
		case *Secret:
			if !strings.Contains(s.Reveal(), canary) {
				t.Errorf("%s does not hold the canary", f.key)
			}
		case *[]Secret:
			if len(*s) != 2 || !strings.Contains((*s)[1].Reveal(), canary) {
				t.Errorf("%s does not hold the canary", f.key)
			}
		}
	}
	outputs := map[string]string{
		"effective": fmt.Sprint(c.Effective()), "origins": fmt.Sprintf("%+v", origins), "warnings": fmt.Sprint(c.Warnings()),
	}
	inner := struct{ hidden Secret }{c.Postgres.URL}
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p"} {
		for name, v := range map[string]any{"config": c, "value": *c, "secret": c.Postgres.URL, "pointer": &c.Postgres.URL, "list": c.RabbitMQ.MoreURLs, "unexported": inner} {
			outputs[name+" "+verb] = fmt.Sprintf(verb, v)
		}
	}
	for name, v := range map[string]any{"config": c, "secret": c.Postgres.URL, "effective": c.Effective()} {
		j, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		y, err := yaml.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		outputs[name+" json"], outputs[name+" yaml"] = string(j), string(y)
	}
	type holder struct{ S Secret }
	x, err := xml.Marshal(holder{c.Postgres.URL})
	if err != nil {
		t.Fatal(err)
	}
	outputs["xml"] = string(x)
	hex := fmt.Sprintf("%x", canary)
	for name, out := range outputs {
		if strings.Contains(out, canary) || strings.Contains(strings.ToLower(out), hex) {
			t.Errorf("%s shows the secret: %s", name, out)
		}
	}
	mustContain(t, outputs["config json"], Mask)
	mustContain(t, outputs["config yaml"], Mask)
	if s := setting(t, c, "rabbitmq.more_urls"); s.Value != "***,***" {
		t.Errorf("more_urls shows as %q", s.Value)
	}
}

func TestProblemsHoldNoSecret(t *testing.T) {
	t.Parallel()
	for name, yaml := range map[string]string{
		"postgres":      "postgres: {url: 'postgres://u:C4N4RY@db.example/x'}",
		"not a url":     "postgres: {url: 'postgres://u:C4N4RY@[bad/x'}",
		"another":       "postgres: {url: 'C4N4RY'}",
		"rabbit":        "rabbitmq: {url: 'amqp://u:C4N4RY@mq.example'}",
		"more":          "rabbitmq: {url: 'amqp://localhost', more_urls: ['amqp://u:C4N4RY@mq.example']}",
		"public url":    "as2: {public_url: 'https://u:C4N4RY@x.example'}",
		"bad public":    "as2: {public_url: 'https://u:C4N4RY@%zz'}",
		"broken yaml":   "postgres: {url: 'postgres://u:C4N4RY@x', url: [",
		"tag":           "postgres: {url: !secret 'C4N4RY'}",
		"duplicate key": "postgres: {url: C4N4RY, url: C4N4RY}",
		// What is not escaped ends the host early, and a part of the password looks like a port.
		"slash in postgres":      "postgres: {url: 'postgres://u:4711/C4N4RY@db.example/x'}",
		"question mark in it":    "postgres: {url: 'postgres://u:4711?C4N4RY@db.example/x'}",
		"hash in it":             "postgres: {url: 'postgres://u:4711#C4N4RY@db.example/x'}",
		"slash in rabbit":        "rabbitmq: {url: 'amqp://u:4711/C4N4RY@mq.example'}",
		"slash, and meant":       "{rabbitmq: {url: 'amqp://u:4711/C4N4RY@mq.example', insecure: true}}",
		"slash in public url":    "as2: {public_url: 'https://u:4711/C4N4RY@x.example'}",
		"large number in public": "as2: {public_url: 'https://u:4711471147/C4N4RY'}",
	} {
		_, _, err := Load(Options{File: write(t, "edihub.yaml", yaml)})
		if err == nil {
			t.Errorf("%s: no error", name)
			continue
		}
		if text := fmt.Sprintf("%+v", err); strings.Contains(text, canary) || strings.Contains(text, "4711") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSecret(t *testing.T) {
	t.Parallel()
	var zero Secret
	if !zero.Empty() || zero.Reveal() != "" || zero.String() != Mask || !zero.Equal(NewSecret("")) {
		t.Error("the zero secret is not empty")
	}
	s := NewSecret("x")
	if s.Empty() || s.Reveal() != "x" || !s.Equal(NewSecret("x")) || s.Equal(NewSecret("y")) {
		t.Error("a secret does not hold its value")
	}
	var u Secret
	if err := json.Unmarshal([]byte(`"abc"`), &u); err != nil || u.Reveal() != "abc" {
		t.Errorf("%v %q", err, u.Reveal())
	}
}
