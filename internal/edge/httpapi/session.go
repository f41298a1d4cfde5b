package httpapi

import (
	"errors"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"cellserver/internal/decide"
	"cellserver/internal/edge/door"
	"cellserver/internal/edge/http1"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/peer"
)

// session answers the plain requests of a connection that an event loop serves, one after the other.
type session struct {
	door.Session // of the connection, which decides
	api          *API
	at           *door.Door
	peer         peer.Peer
	conn         peer.Conn
	reader       http1.Reader

	x        *Exchange  // under way, or nil
	ask      decide.Ask // that is not decided yet, or nil
	beganNs  int64
	admitted bool // the request under way, before its body
	guesses  bool // its token is wrong
	begun    bool // there was a request
	gone     bool // the client
}

// NewSession returns a session for a door's connection.
func (a *API) NewSession(at *door.Door, p peer.Peer, conn peer.Conn) peer.Session {
	return &session{Session: at.NewSession(p, conn), api: a, at: at, peer: p, conn: conn}
}

func (s *session) Peer() peer.Peer { return s.peer }

// User leaves a wrong token to net/http, which makes its client wait.
func (s *session) User(token string) (*acl.User, error) {
	user, err := s.at.User(&s.peer, token)
	s.guesses = errors.Is(err, door.ErrToken)
	return user, err
}

func (s *session) IsStranger(user *acl.User) bool { return s.at.IsStranger(user) }

func (s *session) IsOperator(user *acl.User) bool { return s.at.IsOperator(user) }

// Authenticated reports whether a request has come, for which a client has less time than for others.
func (s *session) Authenticated() bool { return s.begun }

func (s *session) Listens() bool { return false }

// HungUp gives up what the client waits for: who sends no more of HTTP does not wait for an answer.
func (s *session) HungUp(peer.Hangup) {
	s.gone = true
	s.Session.HungUp(peer.Reset)
	s.conn.Wake()
}

// turnBytes of requests or answers end a Feed, so that others get their turn.
const turnBytes = 16 << 10

func (s *session) Feed(in, out []byte) (consumed int, answers []byte, status peer.Status) {
	most := len(out) + turnBytes
	for {
		if s.gone {
			return consumed, out, peer.Abort
		}
		if s.ask == nil {
			if consumed >= turnBytes || len(out) >= most {
				return consumed, out, peer.More
			}
			n, status := s.begin(in[consumed:])
			if consumed += n; status != peer.More {
				return consumed, out, status
			}
		}
		if s.ask != nil {
			if status := s.Ask(s.ask); status != peer.NeedInput {
				return consumed, out, status
			}
			s.ask = nil
			s.api.Decided(s.x)
		}
		closes := s.reader.Close || s.x.Answer.Close
		if out = s.answer(out, closes); closes {
			return consumed, out, peer.Close
		}
	}
}

// begin begins a request. Unless the status is More, there is none, or it is not for a loop.
func (s *session) begin(in []byte) (n int, status peer.Status) {
	if len(in) == 0 {
		return 0, peer.NeedInput
	}
	if s.x == nil {
		s.x = s.api.exchange(s)
	}
	n, found := s.reader.Next(in, &s.x.Request)
	if found == http1.Part {
		s.free()
		return 0, peer.NeedInput
	}
	if found == http1.Doubtful {
		return 0, peer.HandOver
	}
	s.begun = s.begun || found == http1.Plain
	if !s.admitted {
		s.beganNs = s.at.Now()
		admitted := s.api.Admit(s.x)
		switch {
		case s.guesses, admitted && s.x.lists: // which may take long
			return 0, peer.HandOver
		case found == http1.Plain && !admitted:
			return n, peer.More
		case found == http1.Head && (!admitted || !s.x.TakesBody()): // a refusal closes the connection
			return 0, peer.HandOver
		}
	}
	if s.admitted = found == http1.Head; s.admitted {
		return 0, peer.NeedInput
	}
	s.Become(s.x.User)
	s.ask = s.api.Begin(s.x)
	s.x.Request.Body = nil
	return n, peer.More
}

// answer appends the answer and ends the request.
func (s *session) answer(out []byte, closes bool) []byte {
	to, nowNs := &s.x.Answer, s.at.Now()
	out = append(strconv.AppendInt(append(out, "HTTP/1.1 "...), int64(to.Status), 10), ' ')
	out = append(append(out, http.StatusText(to.Status)...), "\r\n"...)
	out = append(append(to.AppendFields(out), "Date: "...), s.api.date.at(nowNs)...)
	out = strconv.AppendInt(append(out, "\r\nContent-Length: "...), int64(len(to.Body)), 10)
	if closes {
		out = append(out, "\r\nConnection: close"...)
	}
	if out = append(out, "\r\n\r\n"...); s.x.Request.Method != http.MethodHead {
		out = append(out, to.Body...)
	}
	s.at.Stats.Count(to.Outcome, nowNs-s.beganNs)
	s.free()
	return out
}

func (s *session) free() {
	s.api.free(s.x)
	s.x = nil
}

// date is the text of the Date field, which is written once a second. It is safe for concurrent use.
type date struct{ last atomic.Pointer[stamp] }

type stamp struct {
	sec  int64
	text string
}

// at returns the date at a time of a clock that need not be that of days.
func (d *date) at(ns int64) string {
	sec, last := ns/int64(time.Second), d.last.Load()
	if last == nil || last.sec != sec {
		last = &stamp{sec, time.Now().UTC().Format(http.TimeFormat)}
		d.last.Store(last)
	}
	return last.text
}
