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
	// channels are those subscribed to, in their order.
	channels []subscription
}

type subscription struct {
	to       *clients.Channel
	listener *clients.Listener
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
	case len(l.channels) > 0 && !x.W.RESP3 && !slices.Contains([]string{"ping", "subscribe", "unsubscribe", "quit", "reset"}, c.Name):
		return reply.NotSubscribed(c)
	case l.monitor != nil && c.Flags&onKeys != 0:
		return reply.ErrMonitorHasNoKeys
	}
	return nil
}

func (r *clientRole) Subscribed() (all []*clients.Channel) {
	if r.listens != nil {
		for _, s := range r.listens.channels {
			all = append(all, s.to)
		}
	}
	return all
}

func (r *clientRole) Subscribe(to *clients.Channel) {
	if slices.Contains(r.Subscribed(), to) {
		return
	}
	l := r.listen()
	l.channels = append(l.channels, subscription{to, to.Begin(r.x.Client)})
	r.x.Client.Change(func(i *clients.Info) { i.Subscribed++ })
}

// Unsubscribe sends pending messages first.
func (r *clientRole) Unsubscribe(from *clients.Channel) {
	i := slices.Index(r.Subscribed(), from)
	if i < 0 {
		return
	}
	l := r.listens
	l.channels[i].listener.End()
	appendMessages(&r.x.W, l.channels[i], clients.MaxBacklogBytes)
	l.channels = slices.Delete(l.channels, i, i+1)
	r.x.Client.Change(func(i *clients.Info) { i.Subscribed-- })
	if l.monitor == nil && len(l.channels) == 0 {
		r.listens = nil
	}
}

// EndListening sends what is pending first.
func (r *clientRole) EndListening() {
	for _, ch := range r.Subscribed() {
		r.Unsubscribe(ch)
	}
	if r.listens == nil {
		return
	}
	r.listens.monitor.End()
	r.x.W.Buf, _ = r.listens.monitor.Take(r.x.W.Buf, clients.MaxBacklogBytes)
	r.listens = nil
}

// abandon ends it for a disconnected client.
func (l *listening) abandon() {
	if l.monitor != nil {
		l.monitor.Abandon()
	}
	for _, s := range l.channels {
		s.listener.Abandon()
	}
}

// sendLines sends a Feed's worth of lines and of messages to a listening client.
func (s *Session) sendLines() {
	more := false
	if s.listens.monitor != nil {
		s.x.W.Buf, more = s.listens.monitor.Take(s.x.W.Buf, feedBytes)
	}
	for _, from := range s.listens.channels {
		more = appendMessages(&s.x.W, from, feedBytes) || more
	}
	if more && s.x.Status == peer.NeedInput {
		s.x.Status = peer.More
	}
}

// appendMessages appends messages of about most bytes, and reports whether more remain.
func appendMessages(w *resp.Writer, from subscription, most int) (more bool) {
	lines, more := from.listener.Take(nil, most)
	for line := range bytes.Lines(lines) {
		w.Push(3)
		w.BulkString("message")
		w.BulkString(from.to.Name)
		w.Bulk(line[:len(line)-1])
	}
	return more
}
