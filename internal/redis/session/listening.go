package session

import (
	"bytes"
	"slices"

	"cellserver/internal/decide/clients"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/peer"
)

// listening is what a session sends unasked.
type listening struct {
	monitor *clients.Listener // nil without MONITOR
	channel *clients.Listener // nil without SUBSCRIBE
}

// listen returns the session's listening, new if it listens to nothing yet.
func (r *clientRole) listen() *listening {
	if r.listens == nil {
		r.listens = &listening{}
	}
	return r.listens
}

// refuses returns why a listening client may not send a command, or nil.
func (l *listening) refuses(x *execute.Executor, c *catalog.Command) error {
	const onKeys = catalog.FlagWrite | catalog.FlagReadonly | catalog.FlagScript
	switch {
	case c == nil:
		return nil
	case l.channel != nil && !x.W.RESP3 && !slices.Contains([]string{"ping", "subscribe", "unsubscribe", "quit", "reset"}, c.Name):
		return reply.NotSubscribed(c)
	case l.monitor != nil && c.Flags&onKeys != 0:
		return reply.ErrMonitorHasNoKeys
	}
	return nil
}

func (r *clientRole) Subscribed() bool { return r.listens != nil && r.listens.channel != nil }

func (r *clientRole) Subscribe() {
	if r.Subscribed() {
		return
	}
	r.listen().channel = r.engine.Config.Channel.Begin(r.x.Client)
	r.x.Client.Change(func(i *clients.Info) { i.Subscribed = true })
}

// Unsubscribe sends pending messages first.
func (r *clientRole) Unsubscribe() (ended bool) {
	if !r.Subscribed() {
		return false
	}
	l := r.listens
	l.channel.End()
	appendMessages(&r.x.W, l.channel, clients.MaxBacklogBytes)
	l.channel = nil
	r.x.Client.Change(func(i *clients.Info) { i.Subscribed = false })
	if l.monitor == nil {
		r.listens = nil
	}
	return true
}

// EndListening sends what is pending first.
func (r *clientRole) EndListening() {
	r.Unsubscribe()
	if r.listens == nil {
		return
	}
	r.listens.monitor.End()
	r.x.W.Buf, _ = r.listens.monitor.Take(r.x.W.Buf, clients.MaxBacklogBytes)
	r.listens = nil
}

// abandon ends it for a disconnected client.
func (l *listening) abandon() {
	for _, listener := range []*clients.Listener{l.monitor, l.channel} {
		if listener != nil {
			listener.Abandon()
		}
	}
}

// sendLines sends a Feed's worth of lines and of messages to a listening client.
func (s *Session) sendLines() {
	more := false
	if s.listens.monitor != nil {
		s.x.W.Buf, more = s.listens.monitor.Take(s.x.W.Buf, feedBytes)
	}
	if s.listens.channel != nil {
		more = appendMessages(&s.x.W, s.listens.channel, feedBytes) || more
	}
	if more && s.x.Status == peer.NeedInput {
		s.x.Status = peer.More
	}
}

// appendMessages appends messages of about most bytes, and reports whether more remain.
func appendMessages(w *resp.Writer, from *clients.Listener, most int) (more bool) {
	lines, more := from.Take(nil, most)
	for line := range bytes.Lines(lines) {
		w.Push(3)
		w.BulkString("message")
		w.BulkString(catalog.SentinelChannel)
		w.Bulk(line[:len(line)-1])
	}
	return more
}
