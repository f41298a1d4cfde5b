package dashboard

import (
	"fmt"
	"time"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// Facts is what the page says of the server beside figures.
type Facts struct {
	Host      string
	Addrs     []string // that clients connect to
	Port      int      // of those without TLS, 0 for none
	StartedNs int64    // Unix time
	Revision  string   // of the source, empty if it is not known
	Store     string   // where the states are kept, if not in memory: a URL without a password
	Warnings  []Warning
}

// Warning is something about the server that its operator should know.
type Warning uint8

// The warnings:
const (
	NoPassword      Warning = iota // other hosts can use the server without one
	RefusesHosts                   // protected mode refuses other hosts, for there is no password
	OpenPage                       // other hosts can read this page without a secret
	UnencryptedPage                // the page's secrets cross the network
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
	facts := [][2]string{{t.Host, f.Host}}
	for _, addr := range f.Addrs {
		facts = append(facts, [2]string{t.Address, addr})
	}
	facts = append(facts, [2]string{t.Uptime, t.uptime(time.Duration(v.page.source.Now() - f.StartedNs))},
		[2]string{t.Version, version}, [2]string{t.Store, store})
	if v.remote == nil {
		facts = append(facts, [2]string{t.Durability, v.page.durability(t)})
	}
	return g.Group{
		h.Dl(h.Class("facts"), g.Map(facts, func(f [2]string) g.Node { return h.Div(h.Dt(g.Text(f[0])), h.Dd(g.Text(f[1]))) })),
		g.If(len(f.Warnings) > 0, h.Ul(h.Class("warnings"), g.Map(f.Warnings, func(w Warning) g.Node {
			return h.Li(g.Text([warnings]string{
				NoPassword: t.NoPassword, RefusesHosts: t.RefusesHosts, OpenPage: t.OpenPage, UnencryptedPage: t.UnencryptedPage,
			}[w]))
		}))),
	}
}

// uptime writes how long the server has run, with two units at most.
func (t *texts) uptime(d time.Duration) string {
	days, hours, minutes := int(d/(24*time.Hour)), int(d.Hours())%24, int(d.Minutes())%60
	switch {
	case days > 0:
		return fmt.Sprintf(t.DaysHours, days, hours)
	case hours > 0:
		return fmt.Sprintf(t.HoursMinutes, hours, minutes)
	case minutes > 0:
		return fmt.Sprintf(t.Minutes, minutes)
	default:
		return t.UnderAMinute
	}
}
