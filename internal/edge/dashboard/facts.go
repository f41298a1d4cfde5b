package dashboard

import (
	"strings"
	"time"

	g "maragu.dev/gomponents"
)

// Facts describes the server beside figures.
type Facts struct {
	Host      string
	Listens   []Listener
	Client    string // redis-cli with the options to connect
	StartedNs int64  // Unix time
	Revision  string // source commit, or empty
	Store     string // URL of the store without a password; empty for memory
	Warnings  []Warning
}

// Listener is where clients reach the server.
type Listener struct{ Name, Addr string }

// Warning is a problem that the operator should know.
type Warning uint8

// The warnings:
const (
	NoPassword      Warning = iota // other hosts can use the server without a password
	RefusesHosts                   // protected mode refuses other hosts, as no password is set
	OpenPage                       // other hosts can read this page without a secret
	UnencryptedPage                // secrets cross the network in clear
	warnings
)

func (v *view) factsPart() g.Node {
	f, t := v.page.source.Facts(), v.t
	version := v.page.source.Version
	if f.Revision != "" {
		version += " (" + f.Revision[:min(len(f.Revision), 9)] + ")"
	}
	store := t.InMemory
	if f.Store != "" {
		store = f.Store
	}
	facts := []g.Node{entry(t.Host, f.Host)}
	for _, l := range f.Listens {
		facts = append(facts, entry(strings.ToUpper(l.Name), l.Addr))
	}
	facts = append(facts, entry(t.Uptime, t.Span(time.Duration(v.page.source.Now()-f.StartedNs))), entry(t.Version, version), entry(t.Store, store))
	if v.replication != nil {
		facts = append(facts, entry(t.Role, role(t, v.replication)))
	}
	if v.remote == nil {
		facts = append(facts, entry(t.Durability, v.page.durability(t)))
	}
	notices := v.replicaNotices()
	for _, w := range f.Warnings {
		notices = append(notices, [warnings]string{
			NoPassword: t.NoPassword, RefusesHosts: t.RefusesHosts, OpenPage: t.OpenPage, UnencryptedPage: t.UnencryptedPage,
		}[w])
	}
	return g.Group{
		list("facts", facts...),
		g.If(len(notices) > 0, el("ul", class("warnings"), g.Map(notices, func(notice string) g.Node { return el("li", text(notice)) }))),
	}
}
