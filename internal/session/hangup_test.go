package session

import (
	"strings"
	"testing"
	"time"

	"cellserver/internal/acl"
	"cellserver/internal/catalog"
	"cellserver/internal/observe"
	"cellserver/internal/peer"
	"cellserver/internal/reply"
	"cellserver/internal/resptest"
)

// converse is feed, and waits where the session does.
func (c *client) converse(in string) (replies, left string, status peer.Status) {
	replies, left, status = c.feed(in)
	for status == peer.Waiting {
		<-c.woken
		var more string
		more, left, status = c.feed(left)
		replies += more
	}
	return replies, left, status
}

// withLater adds TEST.LATER, which is done in an hour.
func withLater(c *Config) {
	rows := append(testCommands(), &catalog.Command{Name: "test.later", Arity: 1})
	c.Catalog = catalog.Of(append(catalog.Rows(), rows...))
	c.Users, c.Records = acl.NewUsers(c.Catalog.ForRules()), observe.New(c.Catalog, t0)
	c.Handlers["test.later"] = Plain(func(c Call, _ [][]byte) error {
		return c.After(time.Hour, func(Call) error { return nil })
	})
}

// TestExecThatIsCancelled leaves nothing of its transaction: the next one does not depend on what was watched for it.
func TestExecThatIsCancelled(t *testing.T) {
	r := newRig(t)
	s, other := r.session(), r.session()
	s.say(t, "WATCH w\r\nMULTI\r\nDBSIZE\r\n")
	r.background.Take(t.Context())
	const behind = "MULTI\r\nCL.THROTTLE a 4 1 10\r\nEXEC\r\n"
	if _, left, status := s.feed("EXEC\r\n" + behind); status != peer.Waiting || left != behind {
		t.Fatalf("status %d, left %q", status, left)
	}
	s.HungUp(peer.HalfClosed)
	other.say(t, "CL.THROTTLE w 4 1 10\r\n")
	got, _, _ := s.converse(behind)
	want := "-" + string(reply.ErrCancelled) + "\r\n+OK\r\n+QUEUED\r\n*1\r\n" + resptest.Ints(0, 5, 4, -1, 10)
	if info := s.client.Info(); got != want || info.Queued != -1 || info.Watched != 0 {
		t.Errorf("got %q, want %q; %d are queued and %d watched", got, want, info.Queued, info.Watched)
	}
}

// TestPauseThatIsCancelled was no work.
func TestPauseThatIsCancelled(t *testing.T) {
	r := newRig(t, withLater)
	r.config.Records.Slowness.SetSlowlog(1)
	s := r.session()
	s.feed("TEST.LATER\r\n")
	s.HungUp(peer.HalfClosed)
	if got := s.say(t, ""); !strings.HasPrefix(got, "-ERR ") {
		t.Errorf("got %q", got)
	}
	for _, c := range r.config.Records.Commands() {
		if c.Command.Name == "test.later" && (c.Calls != 1 || c.Failed != 1 || c.Ns != 0) {
			t.Errorf("counted %+v", c)
		}
	}
	if n := r.config.Records.Slowlog.Len(); n != 0 {
		t.Errorf("%d slow calls", n)
	}
}
