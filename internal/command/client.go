package command

import (
	"strings"

	"cellserver/internal/peer"
	"cellserver/internal/resp"
)

func clientID(s *Session, _ [][]byte) error {
	s.w.Int(s.client.id)
	return nil
}

func clientGetName(s *Session, _ [][]byte) error {
	if name := s.Name(); name != "" {
		s.w.BulkString(name)
	} else {
		s.w.Null()
	}
	return nil
}

func clientSetName(s *Session, args [][]byte) error {
	if err := s.setName(args[2]); err != nil {
		return err
	}
	s.w.OK()
	return nil
}

func (s *Session) setName(name []byte) error {
	if err := checkClientText("Client names", name); err != nil {
		return err
	}
	s.client.change(func(i *clientInfo) { i.name = string(name) })
	return nil
}

func clientSetInfo(s *Session, args [][]byte) error {
	attr := lower(args[2])
	if attr != "lib-name" && attr != "lib-ver" {
		return replyError("ERR Unrecognized option '" + resp.Printable(args[2]) + "'")
	}
	if err := checkClientText(attr, args[3]); err != nil {
		return err
	}
	s.client.change(func(i *clientInfo) {
		if attr == "lib-name" {
			i.libName = string(args[3])
		} else {
			i.libVersion = string(args[3])
		}
	})
	s.w.OK()
	return nil
}

func clientInfoCommand(s *Session, _ [][]byte) error {
	s.w.Verbatim(s.client.line(s.engine.config.Now()))
	return nil
}

// clientList is CLIENT LIST [TYPE type] [ID id ...].
func clientList(s *Session, args [][]byte) error {
	cs := &s.engine.clients
	list := func() []*client { return cs.all(func(*client) bool { return true }) }
	switch {
	case len(args) == 2:
	case len(args) == 4 && lower(args[2]) == "type":
		isType, err := ofType(args[3])
		if err != nil {
			return err
		}
		list = func() []*client { return cs.all(isType) }
	case len(args) > 3 && lower(args[2]) == "id":
		ids := make([]int64, len(args)-3)
		for i, arg := range args[3:] {
			id, ok := resp.ParseInt(arg)
			if !ok {
				return replyError("ERR Invalid client ID")
			}
			ids[i] = id
		}
		list = func() []*client { return cs.those(ids) }
	default:
		return errSyntax
	}
	var b strings.Builder
	s.aside(func() {
		nowNs := s.engine.config.Now()
		for _, c := range list() {
			b.WriteString(c.line(nowNs))
		}
	}, func(s *Session) { s.w.Verbatim(b.String()) })
	return nil
}

// ofType accepts the clients of one of Redis's types. All of ours are normal: there are no replicas, and nobody
// subscribes.
func ofType(name []byte) (func(*client) bool, error) {
	kind := lower(name)
	switch kind {
	case "normal", "master", "slave", "replica", "pubsub":
		return func(*client) bool { return kind == "normal" }, nil
	}
	return nil, replyError("ERR Unknown client type '" + resp.Printable(name) + "'")
}

// clientKill is CLIENT KILL addr, or CLIENT KILL followed by filters, of which all must hold.
func clientKill(s *Session, args [][]byte) error {
	if len(args) == 3 {
		addr := string(args[2])
		if s.kill(func(c *client) bool { return c.peer.Addr == addr }) == 0 {
			return replyError("ERR No such client")
		}
		s.w.OK()
		return nil
	}
	f, err := s.killFilter(args[2:])
	if err != nil {
		return err
	}
	s.w.Int(int64(s.kill(f.accepts)))
	return nil
}

// kill ends the clients that are wanted, itself after the reply, and counts them.
func (s *Session) kill(wanted func(*client) bool) int {
	found := s.engine.clients.all(wanted)
	for _, c := range found {
		if c == s.client {
			s.status = peer.Close
		} else {
			c.conn.Kill()
		}
	}
	return len(found)
}

// killFilter is what CLIENT KILL's options say.
type killFilter struct {
	self   *client
	skipMe bool
	all    []func(*client) bool
}

func (f *killFilter) accepts(c *client) bool {
	if f.skipMe && c == f.self {
		return false
	}
	for _, accepts := range f.all {
		if !accepts(c) {
			return false
		}
	}
	return true
}

func (s *Session) killFilter(args [][]byte) (*killFilter, error) {
	f := &killFilter{self: s.client, skipMe: true}
	for ; len(args) > 0; args = args[2:] {
		if len(args) == 1 {
			return nil, errSyntax
		}
		if lower(args[0]) == "skipme" {
			yes, err := yesNo(args[1])
			if err != nil {
				return nil, err
			}
			f.skipMe = yes
			continue
		}
		accepts, err := s.killOption(lower(args[0]), args[1])
		if err != nil {
			return nil, err
		}
		f.all = append(f.all, accepts)
	}
	return f, nil
}

// killOption is one of CLIENT KILL's options that say which clients.
func (s *Session) killOption(option string, value []byte) (accepts func(*client) bool, err error) {
	switch option {
	case "id":
		id, ok := resp.ParseInt(value)
		if !ok || id < 1 {
			return nil, replyError("ERR client-id should be greater than 0")
		}
		return func(c *client) bool { return c.id == id }, nil
	case "type":
		return ofType(value)
	case "addr":
		return func(c *client) bool { return c.peer.Addr == string(value) }, nil
	case "laddr":
		return func(c *client) bool { return c.peer.LocalAddr == string(value) }, nil
	case "user":
		if s.engine.config.Users.Lookup(string(value)) == nil {
			return nil, replyError("ERR No such user '" + resp.Printable(value) + "'")
		}
		return func(c *client) bool { return c.snapshot().user == string(value) }, nil
	}
	return nil, errSyntax
}

func yesNo(b []byte) (bool, error) {
	switch lower(b) {
	case "yes":
		return true, nil
	case "no":
		return false, nil
	}
	return false, errSyntax
}

// onOff reads an argument that is ON or OFF.
func onOff(b []byte) (bool, error) {
	switch lower(b) {
	case "on":
		return true, nil
	case "off":
		return false, nil
	}
	return false, errSyntax
}

func clientNoEvict(s *Session, args [][]byte) error {
	return s.changeFlag(args[2], func(i *clientInfo, on bool) { i.noEvict = on })
}

func clientNoTouch(s *Session, args [][]byte) error {
	return s.changeFlag(args[2], func(i *clientInfo, on bool) { i.noTouch = on })
}

func (s *Session) changeFlag(arg []byte, set func(i *clientInfo, on bool)) error {
	on, err := onOff(arg)
	if err != nil {
		return err
	}
	s.client.change(func(i *clientInfo) { set(i, on) })
	s.w.OK()
	return nil
}

// clientUnblock is CLIENT UNBLOCK id [TIMEOUT|ERROR]. No command here blocks its client.
func clientUnblock(s *Session, args [][]byte) error {
	if len(args) > 4 {
		return errUnknownOrArity(args)
	}
	if len(args) == 4 && lower(args[3]) != "timeout" && lower(args[3]) != "error" {
		return replyError("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
	}
	if _, ok := resp.ParseInt(args[2]); !ok {
		return errNotInteger
	}
	s.w.Int(0)
	return nil
}
