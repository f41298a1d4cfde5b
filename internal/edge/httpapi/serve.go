package httpapi

import (
	"errors"
	"io"
	"net/http"
	"slices"

	"cellserver/internal/decide"
	"cellserver/internal/edge/door"
	"cellserver/internal/edge/http1"
	"cellserver/internal/wire/acl"
)

// visit is a connection of net/http with a request under way. It is an exchange's Client.
type visit struct {
	*door.Conn
	request *http.Request
}

func (v *visit) User(token string) (*acl.User, error) { return v.Conn.User(v.request, token) }

// ServeHTTP answers a request of a door's connection.
func (a *API) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v := &visit{door.ConnOf(r), r}
	beganNs, x := v.Now(), a.exchange(v)
	x.Request.Method, x.Request.Path, x.Request.Query, x.Request.Host = r.Method, r.URL.Path, r.URL.RawQuery, r.Host
	for name, values := range r.Header {
		for _, value := range values {
			x.Request.Fields = append(x.Request.Fields, http1.Field{Name: name, Value: value})
		}
	}
	decided := a.drive(v, x)
	to := &x.Answer
	to.Close = to.Close || door.LeavesBody(r)
	to.SetHeader(w.Header())
	w.WriteHeader(to.Status)
	_, _ = w.Write(to.Body) // a failure ends the connection
	v.Count(to.Outcome, beganNs)
	if decided { // else its session may still write to it
		a.free(x)
	}
}

// drive completes the answer of an exchange. It reports whether nothing was asked that is not decided.
func (a *API) drive(v *visit, x *Exchange) bool {
	if !a.Admit(x) {
		return true
	}
	if x.TakesBody() {
		if err := x.read(v.request.Body); err != nil {
			a.Fail(x, err)
			return true
		}
	}
	asked := a.beginInTurn(v, x)
	if asked == nil {
		return true
	}
	if err := v.Ask(v.request.Context(), x.User, asked); err != nil {
		a.Fail(x, err)
		return false
	}
	a.Decided(x)
	return true
}

// beginInTurn begins what has a body in a turn, as that may take long.
func (a *API) beginInTurn(v *visit, x *Exchange) decide.Ask {
	if x.TakesBody() {
		v.BeginTurn()
		defer v.EndTurn()
	}
	return a.Begin(x)
}

// read reads the request's body into the kept buffer.
func (x *Exchange) read(from io.Reader) error {
	b := x.in[:0]
	for {
		b = slices.Grow(b, minRead)
		n, err := from.Read(b[len(b):cap(b)])
		switch b = b[:len(b)+n]; {
		case len(b) > MaxBodyBytes:
			return ErrLongBody
		case errors.Is(err, io.EOF):
			x.in, x.Request.Body = b, b
			return nil
		case err != nil:
			return ErrBody
		}
	}
}

const minRead = 512
