package httpapi

import (
	"cellserver/internal/decide"
	"cellserver/internal/edge/door"
	"cellserver/internal/edge/http1"
	"cellserver/internal/limiter"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/peer"
)

// MaxBodyBytes bounds the body of a request.
const MaxBodyBytes = 64 << 10

// Client is who sends requests: a connection and what it has shown of itself.
type Client interface {
	Peer() peer.Peer
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
//		if x.TakesBody() {
//			x.Request.Body = ... // or a.Fail(x, ErrLongBody)
//		}
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

	path  string // after a token
	name  string // of the limit in the path
	call  call   // nil unless there is a body
	begin step
	lists bool                            // the answer's size is that of the limits
	then  func(a *API, x *Exchange) error // once what was asked is decided

	asked     decide.Requests // a single one
	one       [1]decide.Request
	precise   limiter.Precise
	windowSec int64 // of a limit of the caller's own; 0 for none
	denial    int   // status of a denial, 200 for an answer like that of what is allowed
	rates     rates

	root                  object // of the body
	in, key, body, values []byte // kept buffers: of the request's body and key, the answer's body and fields
}

// step begins a call without a body.
type step func(a *API, x *Exchange) (decide.Ask, error)

// call begins a call with a body.
type call func(x *Exchange, body *object) (decide.Ask, error)

// maxKept bounds the buffers that are kept for the next request.
const maxKept = 4 << 10

// exchange returns one for a request of a client.
func (a *API) exchange(c Client) *Exchange {
	x, _ := a.exchanges.Get().(*Exchange)
	if x == nil {
		x = &Exchange{}
	}
	x.Client = c
	return x
}

// free keeps an exchange whose answer is written for another request.
func (a *API) free(x *Exchange) {
	fields := x.Request.Fields
	clear(fields)
	x.Client, x.Request = nil, http1.Request{Fields: fields[:0]}
	a.exchanges.Put(x)
}

// reset prepares the exchange for a request.
func (x *Exchange) reset() {
	x.User, x.Answer = nil, Answer{}
	x.path, x.name, x.call, x.begin, x.lists = x.Request.Path, "", nil, nil, false
	for _, b := range [...]*[]byte{&x.in, &x.key, &x.body, &x.values} {
		if cap(*b) > maxKept {
			*b = nil
		}
	}
}

// forget drops what was asked, which would keep limits that are no more.
func (x *Exchange) forget() {
	x.then, x.asked, x.one[0] = nil, decide.Requests{}, decide.Request{}
	if cap(x.rates.items) > maxItems {
		x.rates.items = nil
	}
	clear(x.rates.items)
	clear(x.root.fields)
	x.root = object{fields: x.root.fields[:0]}
	clear(x.rates.near)
	x.rates = rates{items: x.rates.items[:0], near: x.rates.near[:0]}
}

// Answer is the answer of an Exchange, until its next Admit.
type Answer struct {
	Status  int
	Body    []byte // left out for HEAD
	Close   bool   // the connection is to be closed after it
	Outcome door.Outcome

	problem bool   // else JSON
	login   bool   // a token is missing
	legacy  bool   // there are X-RateLimit-Limit and -Remaining
	resets  bool   // there is X-RateLimit-Reset
	allow   string // of Allow

	values                       []byte // of RateLimit-Policy, RateLimit, X-RateLimit-Near and Retry-After, one behind the other
	policyEnd, limitEnd, nearEnd int    // in values
	most, remaining, resetIn     int64  // of X-RateLimit-
}
