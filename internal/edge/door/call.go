package door

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"cellserver/internal/wire/acl"
)

// Call is a call of a procedure, and its context.
type Call struct {
	context.Context
	Conn      *Conn
	User      *acl.User // nil for the default one
	path      string
	header    metadata.MD
	procedure Procedure
	refusal   error
}

type callKey struct{}

// Value finds the call itself, too, as grpc-go wraps it.
func (c *Call) Value(key any) any {
	if key == (callKey{}) {
		return c
	}
	return c.Context.Value(key)
}

// Header returns a header by its name in lower case, or "".
func (c *Call) Header(name string) string {
	if values := c.header[name]; len(values) > 0 {
		return values[0]
	}
	return ""
}

// Ending is closed once the door shuts down, which waits for calls.
func (c *Call) Ending() <-chan struct{} { return c.Conn.door.ending }

// codec leaves messages as bytes: decoding takes a turn.
type codec struct{}

func (codec) Name() string { return "proto" }

func (codec) Unmarshal(data mem.BufferSlice, to any) error {
	*to.(*[]byte) = data.Materialize()
	return nil
}

func (codec) Marshal(m any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(m.([]byte))}, nil
}

// receive returns the only message.
func (c *Call) receive(s grpc.ServerStream) (message []byte, err error) {
	if !c.Conn.ledger.isWhole() {
		defer c.await(s)()
	}
	if err := s.RecvMsg(&message); err != nil {
		if errors.Is(err, io.EOF) {
			err = status.Error(codes.Unimplemented, "a call has one message, and this one none")
		}
		return nil, err
	}
	if most := c.procedure.MaxBytes; len(message) > most {
		return nil, status.Error(codes.ResourceExhausted, fmt.Sprintf("the message has %d bytes, more than %d", len(message), most))
	}
	var second []byte
	switch err := s.RecvMsg(&second); {
	case err == nil:
		return nil, status.Error(codes.Unimplemented, "a call has one message, and this one more")
	case !errors.Is(err, io.EOF):
		return nil, err
	}
	return message, nil
}

// await has the call end unless its message comes in time, or when it is one of too many of its host. The
// returned function ends that.
func (c *Call) await(s grpc.ServerStream) (arrived func()) {
	d := c.Conn.door
	end := func(code codes.Code, text string) {
		// grpc-go's streams have this method; a context of our own for each would cost more than all of this
		stream := grpc.ServerTransportStreamFromContext(s.Context()).(interface{ WriteStatus(*status.Status) error })
		_ = stream.WriteStatus(status.New(code, text))
	}
	one := &wait{host: c.Conn.host, end: func() {
		end(codes.ResourceExhausted, "too many calls of this host wait for their message; see --maxclients")
	}}
	d.waits.join(one, d.mostWaits())
	timer := time.AfterFunc(requestTimeout, func() {
		end(codes.DeadlineExceeded, fmt.Sprintf("the message did not arrive within %d s", requestTimeout/time.Second))
	})
	return func() {
		timer.Stop()
		d.waits.leave(one)
	}
}
