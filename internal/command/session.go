package command

import (
	"time"

	"cellserver/internal/resp"
	"cellserver/internal/shard"
)

// Status says what a session wants of its driver after Feed.
type Status uint8

const (
	// NeedInput says that all that could be executed was; call Feed again with what was not consumed and more.
	NeedInput Status = iota
	// More says that there may be more to execute in the input; call Feed again when the replies are on their way,
	// unless the connection has to end.
	More
	// Waiting says that the last command is not done. Read no more, and call Feed again after Conn.Wake was called.
	Waiting
	// Close says to send the replies, then close the connection.
	Close
	// Abort says to close the connection at once and send nothing.
	Abort
)

// Peer says who is at the other end of a session.
type Peer struct {
	Addr      string // the client's address
	LocalAddr string // the server's
	Unix      bool   // over a unix socket
	TLS       bool
	CertName  string // the common name in the client's certificate, if it gave one that was verified
}

// Conn is what a session may ask of its connection. Both may be called from any goroutine and at any time; after the
// connection's end they have no effect.
type Conn interface {
	// Wake has a session that was Waiting fed again.
	Wake()
	// Kill ends the connection at once. A session that ends its own returns Close instead, which sends its replies.
	Kill()
}

// Session is one client's conversation: bytes in, bytes out. It knows no socket. It is for one goroutine at a
// time.
type Session struct {
	// What every command needs comes first: with thousands of clients each cache line is a wait for memory.
	engine        *Engine
	scratch       *scratch // only during Feed
	decoder       resp.Decoder
	w             resp.Writer
	db            uint16
	authenticated bool
	status        Status
	// waiting is what the last command still has to do: it appends its reply and returns true, or returns false
	// to be called again after the next wake-up.
	waiting func(*Session) bool

	conn       Conn
	peer       Peer
	id         int64
	created    time.Time
	name       string
	libName    string
	libVersion string
}

// scratch is what a session needs only while it executes; sessions share them.
type scratch struct {
	args  [][]byte
	batch []shard.Request
}

const (
	// feedBytes is where Feed stops so that its replies can be sent, so that a short input with long replies
	// cannot fill the memory.
	feedBytes = 64 << 10
	// UnauthenticatedOutput bounds the pending replies of a client that has yet to authenticate.
	UnauthenticatedOutput = 1 << 10

	maxBatch       = 128
	maxScratchArgs = 64
)

// Authenticated reports whether the client has given the password, or there is none.
func (s *Session) Authenticated() bool { return s.authenticated }

// Close ends the session; its driver calls it once, when the connection has ended, and feeds it no more.
func (s *Session) Close() {
	s.waiting = nil // or what it waits for would stay for as long as something may wake it
}

// Feed executes the commands at the front of in and appends their replies to out. It returns how many bytes of in
// it consumed, and out. What it has not consumed must stand at the front of in the next time. It may change in.
func (s *Session) Feed(in, out []byte) (consumed int, replies []byte, status Status) {
	s.w.Buf = out
	s.status = NeedInput
	s.scratch = s.engine.scratch.Get().(*scratch)
	defer s.giveBack()
	if s.waiting != nil && !s.resume() {
		return 0, s.w.Buf, Waiting
	}
	most := len(out) + feedBytes
	if !s.authenticated {
		most = len(out) + UnauthenticatedOutput
	}
	commands := 0
	for s.status == NeedInput {
		if len(s.w.Buf) >= most {
			s.status = More
			break
		}
		n, args, err := s.decoder.Next(in[consumed:], s.scratch.args)
		if err != nil {
			s.fail(err)
			s.status = Close
		}
		if n == 0 {
			break
		}
		consumed += n
		s.scratch.args = args
		if len(args) > 0 {
			s.execute(args)
			commands++
		}
	}
	s.flush()
	s.engine.commands.Add(int64(commands))
	return consumed, s.w.Buf, s.status
}

// giveBack leaves nothing in the scratch that refers to the input, whose buffer it would keep alive.
func (s *Session) giveBack() {
	clear(s.scratch.batch) // not empty after a panic
	s.scratch.batch = s.scratch.batch[:0]
	if cap(s.scratch.args) > maxScratchArgs {
		s.scratch.args = nil
	}
	clear(s.scratch.args[:cap(s.scratch.args)])
	s.engine.scratch.Put(s.scratch)
	s.scratch, s.w.Buf = nil, nil
}

func (s *Session) execute(args [][]byte) {
	r, args, err := s.admit(args)
	if err == nil {
		if !r.batches {
			s.flush()
		}
		err = r.run(s, args)
		if r.long && s.status == NeedInput {
			s.status = More
		}
	}
	if err != nil {
		s.fail(err)
	}
}

func (s *Session) fail(err error) {
	s.flush()
	s.w.Error(replyText(err))
}

// admit finds the row of a command or subcommand and checks what can be checked before it runs.
func (s *Session) admit(args [][]byte) (*row, [][]byte, error) {
	r := s.engine.table.lookup(args[0])
	if r == nil {
		if isCrossProtocol(args[0]) {
			s.engine.reportCrossProtocol(s.peer.Addr)
			s.status = Abort
		}
		return nil, nil, errUnknownCommand(args)
	}
	if r.subs != nil && len(args) > 1 {
		sub := r.sub(args[1])
		if sub == nil {
			return nil, nil, errUnknownSubcommand(r, args[1])
		}
		r = sub
	}
	if !r.acceptsArity(len(args)) {
		return nil, nil, errArity(r)
	}
	if !s.authenticated && r.flags&flagNoAuth == 0 {
		return nil, nil, errNoAuth
	}
	var err error
	r.keys.eachKey(args, func(key []byte) {
		if len(key) > s.engine.config.MaxKeyBytes {
			err = errKeyTooLong(s.engine.config.MaxKeyBytes)
		}
	})
	return r, args, err
}
