package httpapi

import (
	"net/http"

	"cellserver/internal/decide"
	"cellserver/internal/edge/door"
	"cellserver/internal/edge/http1"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/peer"
)

// MaxBodyBytes bounds the body of a request.
const MaxBodyBytes = 64 << 10

// Client is who sends requests: a connection and what it has shown of itself.
type Client interface {
	Peer() *peer.Peer
	// User returns the user of a token, or without one that of the connection; nil is the default user. An
	// error is one of door's.
	User(token string) (*acl.User, error)
	// IsStranger and IsOperator are about a user that User has returned.
	IsStranger(user *acl.User) bool
	IsOperator(user *acl.User) bool
}

// Exchange is a request and its answer, one after the other: its buffers are kept for the next request. A
// server sets Request and Client, and calls
//
//	if a.Admit(x) {
//		if x.TakesBody() { x.Request.Body = ... } // or a.Fail(x, ErrLongBody)
//		if ask := a.Begin(x); ask != nil {
//			... // have ask decided by x.User
//			a.Decided(x) // or a.Fail(x, err)
//		}
//	}
//
// whereupon the Answer is complete. None of these calls blocks, but for what Client.User does. An Exchange
// whose ask was given up before it was decided is not used again, as its session may still write to it.
type Exchange struct {
	Request http1.Request
	Client  Client
	User    *acl.User // set by Admit; nil for the default user
	Answer  Answer
}

// Answer is the answer of an Exchange, until its next Admit.
type Answer struct {
	Status  int
	Body    []byte // left out for HEAD
	Close   bool   // the connection is to be closed after it
	Outcome door.Outcome
}

// AppendFields appends the fields of the header, each with its line's end, but for Content-Length, Date and
// Connection.
func (to *Answer) AppendFields(b []byte) []byte { panic("not yet") }

// SetHeader sets the same fields.
func (to *Answer) SetHeader(h http.Header) { panic("not yet") }

// Admit looks at all of a request but its body, and sets its user. If it returns false, the request is
// refused and the Answer complete.
func (a *API) Admit(x *Exchange) bool { panic("not yet") }

// TakesBody reports, after Admit, whether the request's body is to be read. Else a body is left.
func (x *Exchange) TakesBody() bool { panic("not yet") }

// Begin reads the request, and returns what is to be decided for its user. If it returns nil, the Answer is
// complete.
func (a *API) Begin(x *Exchange) decide.Ask { panic("not yet") }

// Decided completes the Answer once all that Begin returned is decided.
func (a *API) Decided(x *Exchange) { panic("not yet") }

// Fail completes the Answer with an error: one of door's, ErrLongBody, ErrBody, or another for a request that
// has ended.
func (a *API) Fail(x *Exchange, err error) { panic("not yet") }
