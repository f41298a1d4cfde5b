package clients

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

const (
	t0  = int64(1_700_000_000_000_000_000)
	sec = int64(1_000_000_000)
)

// TestLine: the line of a silent client, and the fields that change.
func TestLine(t *testing.T) {
	ping := catalog.New().Lookup([]byte("ping"))
	get := catalog.New().LookupFull([]byte("config|get"))
	const silent = "id=1 addr=a:1 laddr=b:2 fd=-1 name= age=7 idle=7 flags=N db=0 sub=0 psub=0 ssub=0 multi=-1 watch=0 qbuf=0 " +
		"qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0 omem=0 tot-mem=1024 events=r cmd=NULL user= redir=-1 resp=2 " +
		"lib-name= lib-ver=\n"
	for _, tt := range []struct {
		name    string
		peer    peer.Peer
		do      func(c *Client)
		changed string // fields that differ from the silent client's
	}{
		{name: "silent"},
		{name: "a command", do: func(c *Client) { c.Active(ping, t0+5*sec) }, changed: "idle=2 cmd=ping"},
		{name: "the same again", do: func(c *Client) { c.Active(ping, t0+5*sec); c.Active(ping, t0+6*sec) }, changed: "idle=1 cmd=ping"},
		{name: "another", do: func(c *Client) { c.Active(ping, t0+5*sec); c.Sent(get) }, changed: "idle=2 cmd=config|get"},
		{name: "an unknown one", do: func(c *Client) { c.Active(ping, t0+5*sec); c.Sent(nil) }, changed: "idle=2 cmd=NULL"},
		{name: "in the future", do: func(c *Client) { c.Active(ping, t0+9*sec) }, changed: "idle=0 cmd=ping"},
		{name: "names", do: func(c *Client) {
			c.Change(func(i *Info) { i.Name, i.LibName, i.LibVersion, i.User = "me", "lib", "v1", "app" })
		}, changed: "name=me lib-name=lib lib-ver=v1 user=app"},
		{name: "a transaction", do: func(c *Client) { c.Change(func(i *Info) { i.DB, i.Queued, i.Watched = 3, 0, 2 }) }, changed: "flags=x db=3 multi=0 watch=2"},
		{name: "RESP3", do: func(c *Client) { c.Change(func(i *Info) { i.RESP3 = true }) }, changed: "resp=3"},
		{name: "a unix socket", peer: peer.Peer{Unix: true}, changed: "flags=U"},
		{name: "all flags", peer: peer.Peer{Unix: true}, do: func(c *Client) {
			c.Change(func(i *Info) {
				i.Monitoring, i.Queued, i.NoEvict, i.NoTouch, i.Tracking = true, 1, true, true, true
			})
		}, changed: "flags=OUxteT multi=1 redir=0"},
	} {
		tt.peer.Addr, tt.peer.LocalAddr = "a:1", "b:2"
		c := New(tt.peer, nil, t0)
		new(Register).Add(c)
		if tt.do != nil {
			tt.do(c)
		}
		want := strings.Split(silent, " ")
		for field := range strings.FieldsSeq(tt.changed) {
			name, _, _ := strings.Cut(field, "=")
			at := slices.IndexFunc(want, func(f string) bool { return strings.HasPrefix(f, name+"=") })
			end := want[at][len(strings.TrimSuffix(want[at], "\n")):]
			want[at] = field + end
		}
		if got := c.Line(t0 + 7*sec + 999_999_999); got != strings.Join(want, " ") {
			t.Errorf("%s: got  %s want %s", tt.name, got, strings.Join(want, " "))
		}
	}
	c := New(peer.Peer{Addr: "a:1"}, nil, t0)
	c.Change(func(i *Info) { i.Name = "me" })
	if c.Addr() != "a:1" || c.Name() != "me" || !strings.Contains(c.Line(t0-sec), " age=0 idle=0 ") {
		t.Errorf("got %s, %s: %s", c.Addr(), c.Name(), c.Line(t0-sec))
	}
}

// TestRegister: IDs grow, and a client is found while it is connected.
func TestRegister(t *testing.T) {
	var r Register
	var all []*Client
	for range 20 {
		c := New(peer.Peer{}, nil, t0)
		r.Add(c)
		all = append(all, c)
	}
	r.Remove(all[2])
	r.Remove(all[2])
	r.Remove(all[19])
	r.Add(all[2])
	ids := func(clients []*Client) (text string) {
		for _, c := range clients {
			text += fmt.Sprint(c.ID, " ")
		}
		return text
	}
	if r.Len() != 19 {
		t.Errorf("%d clients", r.Len())
	}
	if got, want := ids(r.All(func(c *Client) bool { return c.ID > 15 })), "16 17 18 19 21 "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := ids(r.ByIDs([]int64{7, 3, 21, 7, 99, 1, 21})), "7 21 1 "; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
