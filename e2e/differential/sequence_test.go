package differential

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"cellserver/internal/test/patience"
)

// sequence sends commands to both servers in turn, over two twins.
type sequence struct {
	*pair
	maker    callMaker
	used     *uses
	conns    [2]*twin
	history  []string
	commands int
}

const historySteps = 25 // shown on failure

func (s *sequence) run() (err error) {
	defer func() {
		for _, c := range s.conns {
			if c != nil {
				c.close()
			}
		}
		if err != nil {
			err = fmt.Errorf("%w\nafter:\n%s", err, strings.Join(s.history[max(0, len(s.history)-historySteps):], "\n"))
		}
	}()
	if err := s.restart(); err != nil {
		return err
	}
	switch s.maker.IntN(4) {
	case 0:
		s.maker.extends = true
	case 1:
		s.maker.values = true
	}
	for range sequenceSteps {
		if err := s.step(); err != nil {
			return err
		}
	}
	return s.compareKeys()
}

func (s *sequence) restart() error {
	for _, call := range []string{"ACL LOAD", "FLUSHALL", "SCRIPT FLUSH", "ACL LOG RESET", "CONFIG SET timeout 0 maxclients 10000"} {
		for _, h := range []*half{&s.admin.ours, &s.admin.redis} {
			if got, err := h.do(strings.Fields(call)...); err != nil || got.text != "OK" {
				return fmt.Errorf("%s: %s %w", call, got, err)
			}
		}
	}
	return s.connect()
}

// connect opens both twins and waits until only they and the admin remain.
func (s *sequence) connect() error {
	for _, c := range s.conns {
		if c != nil {
			c.close()
		}
	}
	for _, admin := range []*half{&s.admin.ours, &s.admin.redis} { // else a new one may exceed maxclients
		if _, err := awaitClients(admin, 1); err != nil {
			return err
		}
	}
	var dialError error
	for i := range s.conns {
		s.conns[i] = s.dial(func(why ...any) { dialError = fmt.Errorf("dial: %v", why) })
		if dialError != nil {
			return dialError
		}
	}
	for _, of := range []func(*twin) *half{func(c *twin) *half { return &c.ours }, func(c *twin) *half { return &c.redis }} {
		if err := identify(of(s.admin), of(s.conns[0]), of(s.conns[1])); err != nil {
			return err
		}
	}
	if s.maker.IntN(10) == 0 {
		return nil
	}
	for _, c := range s.conns {
		if err := s.execute(c, []string{"AUTH", "default", "sesame"}, false); err != nil {
			return err
		}
	}
	return nil
}

func identify(admin, a, b *half) error {
	lines, err := awaitClients(admin, 3)
	if err != nil {
		return err
	}
	a.id, b.id = clientID(lines, a), clientID(lines, b)
	a.other, b.other = b.id, a.id
	if a.id == "" || b.id == "" {
		return fmt.Errorf("%s: clients are %q", admin.RemoteAddr(), lines)
	}
	return nil
}

// awaitClients waits for n clients and returns CLIENT LIST's lines.
func awaitClients(admin *half, n int) (lines []string, err error) {
	came := patience.Until(func() bool {
		var list value
		list, err = admin.do("CLIENT", "LIST")
		lines = strings.Split(strings.TrimSpace(list.text), "\n")
		return err != nil || len(lines) == n
	})
	if err == nil && !came {
		err = fmt.Errorf("%s: clients are %q", admin.RemoteAddr(), lines)
	}
	return lines, err
}

func clientID(lines []string, h *half) string {
	for _, line := range lines {
		f := strings.Fields(line)
		if slices.Contains(f, "addr="+h.LocalAddr().String()) {
			return strings.TrimPrefix(f[0], "id=")
		}
	}
	return ""
}

func (s *sequence) step() error {
	c := s.conns[s.maker.IntN(len(s.conns))]
	switch n := s.maker.IntN(100); {
	case n < 20 && !s.maker.values:
		return s.throttle()
	case n < 22:
		return s.walk(c)
	}
	return s.execute(c, s.maker.call(c), s.maker.IntN(4) == 0)
}

// execute runs a command on both servers and compares the replies.
func (s *sequence) execute(c *twin, call []string, inline bool) error {
	s.commands++
	name := strings.ToLower(call[0])
	s.history = append(s.history, fmt.Sprintf("%d: %.300q", slices.Index(s.conns[:], c), call))
	var got [2]value
	for _, h := range []*half{&c.ours, &c.redis} {
		if err := h.send(inline, call); err != nil {
			return fmt.Errorf("%.300q: send to %s: %w", call, h.RemoteAddr(), err)
		}
	}
	for i, h := range []*half{&c.ours, &c.redis} {
		var err error
		if got[i], err = h.read(); err != nil {
			return fmt.Errorf("%.300q: no reply of %s: %w", call, h.RemoteAddr(), err)
		}
	}
	if err := s.compare(c, call, got[0], got[1]); err != nil {
		return err
	}
	s.history[len(s.history)-1] += " " + shorten(got[1].String())
	switch {
	case name == "quit":
		return s.ended(c)
	case name == "client" && len(call) > 2 && strings.EqualFold(call[1], "kill") && got[1].typ != '-' && got[1].text != "QUEUED",
		name == "acl" && len(call) > 1 && strings.EqualFold(call[1], "load") && got[1].text == "OK":
		return errors.Join(s.renewAdmin(), s.connect())
	case (name == "auth" || name == "hello") && strings.HasPrefix(got[0].text, "WRONGPASS"):
		return s.admin.login() // failed attempts would add up their delays
	}
	extended := s.executed(c, call, got[1]) || isExtension(call) && got[1].typ != '-' || strings.Contains(got[0].String(), refillHint)
	if extended && !s.maker.values {
		return s.sync()
	}
	return nil
}

// executed tracks the connection's transaction, and reports whether the servers' keys may differ now.
func (s *sequence) executed(c *twin, call []string, reply value) (extended bool) {
	switch name := strings.ToLower(call[0]); {
	case reply.text == "QUEUED" && reply.typ == '+':
		c.queued = append(c.queued, call)
	case name == "multi" && reply.text == "OK":
		c.multi = true
	case name == "exec", name == "discard" && reply.text == "OK", name == "reset" && reply.typ == '+':
		if name == "exec" && reply.typ == '-' && !strings.HasPrefix(reply.text, "EXECABORT") {
			return false
		}
		extended = slices.ContainsFunc(c.queued, isExtension)
		c.queued, c.multi = nil, false
	}
	return extended
}

// ended expects both servers to close the connection after QUIT.
func (s *sequence) ended(c *twin) error {
	for _, h := range []*half{&c.ours, &c.redis} {
		if v, err := h.read(); !errors.Is(err, io.EOF) {
			return fmt.Errorf("%s goes on after QUIT: %s %w", h.RemoteAddr(), v, err)
		}
	}
	return s.connect()
}

// compare compares replies, and the elements of EXEC's one by one.
func (s *sequence) compare(c *twin, call []string, ours, redis value) error {
	if strings.EqualFold(call[0], "exec") && len(redis.elems) == len(c.queued) && len(ours.elems) == len(c.queued) && c.multi {
		for i, queued := range c.queued {
			if err := s.compare(&twin{ours: c.ours, redis: c.redis}, queued, ours.elems[i], redis.elems[i]); err != nil {
				return fmt.Errorf("in EXEC: %w", err)
			}
		}
		return nil
	}
	a, b := ours, redis
	if a.String() != b.String() {
		a, b = s.used.except(call, ours, redis)
	}
	if a.String() == b.String() {
		return nil
	}
	return fmt.Errorf("%.300q\nours    %s\nRedis's %s\nfrom where they differ:\nours    %s\nRedis's %s", call,
		shorten(ours.String()), shorten(redis.String()), fromDifference(a.String(), b.String()), fromDifference(b.String(), a.String()))
}

func fromDifference(text, other string) string {
	at := 0
	for at < len(text) && at < len(other) && text[at] == other[at] {
		at++
	}
	return shorten(text[max(0, at-20):])
}

func shorten(text string) string {
	const most = 300
	if len(text) > most {
		return text[:most] + "..."
	}
	return text
}

// throttle creates a key in cellserver and the same one in Redis.
func (s *sequence) throttle() error {
	db, key := s.maker.database(), s.maker.key()
	// Some funnels drain before the sequence ends, none at a critical time.
	call := []string{"CL.THROTTLE", key, s.maker.pick("0", "3", "100"), "1", s.maker.pick("3600", "100000"), s.maker.pick("0", "1", "1", "1", "2")}
	s.history = append(s.history, fmt.Sprintf("admin: db %s %q", db, call))
	if _, err := s.admin.ours.do("SELECT", db); err != nil {
		return err
	}
	if got, err := s.admin.ours.do(call...); err == nil && s.maker.extends && strings.HasPrefix(got.text, "WRONGTYPE") {
		return s.syncKeys(db, key) // a value, which both servers have
	} else if err != nil || len(got.elems) != 5 {
		return fmt.Errorf("%q: %s %w", call, got, err)
	}
	return s.syncKeys(db, key)
}

// sync copies our keys to Redis after a change that only Redis made.
func (s *sequence) sync() error {
	for _, db := range databases() {
		if err := s.syncKeys(db, keyNames()...); err != nil {
			return err
		}
	}
	return nil
}

func (s *sequence) syncKeys(db string, keys ...string) error {
	for _, h := range []*half{&s.admin.ours, &s.admin.redis} {
		if got, err := h.do("SELECT", db); err != nil || got.text != "OK" {
			return fmt.Errorf("SELECT %s: %s %w", db, got, err)
		}
	}
	for _, key := range keys {
		ours, err := state(&s.admin.ours, key)
		if err != nil {
			return err
		}
		redis, err := state(&s.admin.redis, key)
		if err != nil {
			return err
		}
		if ours == redis {
			continue
		}
		call := []string{"SET", key, ours[0], "PXAT", ours[1]}
		if ours[0] == "" {
			call = []string{"DEL", key}
		}
		if got, err := s.admin.redis.do(call...); err != nil || got.typ == '-' {
			return fmt.Errorf("%q: %s %w", call, got, err)
		}
	}
	for _, h := range []*half{&s.admin.ours, &s.admin.redis} { // equalizes the last command
		if _, err := h.do("PING"); err != nil {
			return err
		}
	}
	return nil
}

// state returns a key's value and expiry.
func state(h *half, key string) (state [2]string, err error) {
	for i, name := range []string{"GET", "PEXPIRETIME"} {
		got, err := h.do(name, key)
		if err != nil {
			return state, err
		}
		if state[i] = got.text; got.null {
			return [2]string{"", ""}, nil
		}
	}
	return state, nil
}

func (s *sequence) compareKeys() error {
	for _, db := range databases() {
		for _, h := range []*half{&s.admin.ours, &s.admin.redis} {
			if _, err := h.do("SELECT", db); err != nil {
				return err
			}
		}
		for _, key := range keyNames() {
			ours, err := state(&s.admin.ours, key)
			if err != nil {
				return err
			}
			if redis, err := state(&s.admin.redis, key); err != nil || ours != redis {
				return fmt.Errorf("at the end, db %s has %q as %v here and as %v at Redis (%w)", db, key, ours, redis, err)
			}
		}
	}
	return nil
}

// walk compares complete SCAN iterations, if the user may run them.
func (s *sequence) walk(c *twin) error {
	if c.multi {
		return nil
	}
	options := s.maker.scanOptions()
	s.history = append(s.history, fmt.Sprintf("%d: walk by SCAN %q", slices.Index(s.conns[:], c), options))
	var found [2][]string
	for i, h := range []*half{&c.ours, &c.redis} {
		for cursor := "0"; ; {
			got, err := h.do(append([]string{"SCAN", cursor}, options...)...)
			if err != nil {
				return err
			}
			if got.typ == '-' {
				found[i] = append(found[i], got.text)
				break
			}
			for _, key := range got.elems[1].elems {
				found[i] = append(found[i], key.text)
			}
			if cursor = got.elems[0].text; cursor == "0" {
				break
			}
		}
		slices.Sort(found[i])
		found[i] = slices.Compact(found[i])
	}
	if !slices.Equal(found[0], found[1]) {
		return fmt.Errorf("a walk by SCAN %q finds %q, and at Redis %q", options, found[0], found[1])
	}
	return nil
}
