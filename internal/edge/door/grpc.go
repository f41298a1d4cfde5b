package door

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime/debug"
	"slices"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/keepalive"
	grpcpeer "google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"cellserver/internal/wire/acl"
)

// Procedure is what a door of gRPC serves under a path.
type Procedure struct {
	MaxBytes int // of a message, up to MaxMessageBytes
	// Admit says whose call it is, or why it is refused before its message is received. It runs on the
	// connection's reader, so it waits for nothing. Without it everybody may call.
	Admit func(*Call) (*acl.User, error)
	// Answer returns the answer to a message.
	Answer func(c *Call, message []byte) ([]byte, error)
	// Stream, in place of Answer, sends answers until it returns, which it does once the call is done or
	// Ending. Beyond a maximum at once a call is UNIMPLEMENTED.
	Stream func(c *Call, message []byte, send func(answer []byte) error) error
}

// Procedures are those of a door by path, as "/package.Service/Method".
type Procedures struct {
	All map[string]Procedure
	// Unknown answers a call of another path.
	Unknown error
	// Code returns the code of an error that has none, by status.FromError.
	Code func(error) codes.Code
}

const (
	// MaxMessageBytes fits what Envoy makes of 60 KiB of headers, its maximum, in several descriptors.
	MaxMessageBytes = 256 << 10

	streamWindow, connWindow = 64 << 10, 1 << 20

	pingTime, pingTimeout = 30 * time.Second, 20 * time.Second // of connections from which nothing comes
	// minPingTime is below the 10 s of an Envoy, and the least that its clients accept.
	minPingTime = 5 * time.Second
	bufferBytes = 4 << 10 // of a connection that is read, or written
	// workers are goroutines that answer calls, one after another: in a new one for each its stack would grow
	// anew. Further calls have their own. A stream may take one for as long as it lasts.
	workers = 64 + maxStreamed

	maxStreamed, maxStreamedOfHost = 64, 32 // calls of Procedure.Stream at once
)

// NewGRPC returns a Door of gRPC.
func NewGRPC(c Config, p Procedures) *Door {
	d := newDoor(c)
	d.grpc = true
	g := &gate{d, p}
	d.serving = grpcServer{grpc.NewServer(
		grpc.Creds(handshakes{}),
		grpc.InTapHandle(g.tap),
		grpc.UnknownServiceHandler(g.serve),
		grpc.ForceServerCodecV2(codec{}),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.MaxRecvMsgSize(MaxMessageBytes),
		grpc.ConnectionTimeout(requestTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionIdle: idleTimeout, Time: pingTime, Timeout: pingTimeout,
			MaxConnectionAge: c.MaxConnectionAge, MaxConnectionAgeGrace: c.MaxConnectionAgeGrace,
		}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPingTime, PermitWithoutStream: true}),
		grpc.InitialWindowSize(streamWindow),
		grpc.InitialConnWindowSize(connWindow),
		grpc.ReadBufferSize(bufferBytes),
		grpc.WriteBufferSize(bufferBytes),
		grpc.NumStreamWorkers(workers),
	)}
	return d
}

// grpcServer ends as an http.Server does.
type grpcServer struct{ *grpc.Server }

func (s grpcServer) Shutdown(ctx context.Context) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		s.GracefulStop()
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s grpcServer) Close() error {
	s.Stop()
	return nil
}

// handshakes makes a connection's handshake of TLS, if it has one, and lets calls find their connection. It
// implements credentials.TransportCredentials, for a server.
type handshakes struct{}

// identity is what grpc-go knows of a connection.
type identity struct{ *Conn }

func (identity) AuthType() string { return "" }

func (handshakes) ServerHandshake(nc net.Conn) (net.Conn, credentials.AuthInfo, error) {
	c := nc.(*Conn)
	if err := c.shakeHands(); err != nil {
		return nil, nil, io.EOF // told to nobody else
	}
	if err := c.greet(); err != nil {
		return nil, nil, io.EOF
	}
	return c, identity{c}, nil
}

func (handshakes) ClientHandshake(context.Context, string, net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.ErrUnsupported
}

func (handshakes) Info() credentials.ProtocolInfo            { return credentials.ProtocolInfo{} }
func (h handshakes) Clone() credentials.TransportCredentials { return h }
func (handshakes) OverrideServerName(string) error           { return errors.ErrUnsupported }

// sendInTime sends what a client must read within unreadTimeout: grpc-go would wait for ever. The deadline is
// that of all writes that begin within a second.
func (c *Conn) sendInTime(b []byte) (int, error) {
	if now := time.Now(); now.Sub(c.unread) > time.Second {
		c.unread = now
		_ = c.wire.SetWriteDeadline(now.Add(unreadTimeout))
	}
	return c.send(b)
}

// notGRPC is for clients of other protocols.
const notGRPC = "this address speaks gRPC (--grpc-addr), over HTTP/2; for others there is --http-addr"

// greet reads the preface of HTTP/2, for which grpc-go's first frames would not wait. Others get an answer of
// HTTP/1.
func (c *Conn) greet() error {
	c.ledger = newLedger(true)
	c.hold(http2Bytes)
	c.greeting = make([]byte, 0, len(preface))
	for len(c.greeting) < len(preface) {
		n, err := c.Conn.Read(c.greeting[len(c.greeting):len(preface)])
		if c.greeting = c.greeting[:len(c.greeting)+n]; string(c.greeting) != preface[:len(c.greeting)] {
			c.refuseHTTP1()
			return errNotGRPC
		}
		if err != nil {
			return err
		}
	}
	return nil
}

var errNotGRPC = errors.New("door: " + notGRPC)

// refuseHTTP1 answers, and gives the client time to read that: closed with something unread, the connection
// would be reset.
func (c *Conn) refuseHTTP1() {
	_, _ = fmt.Fprintf(c.Conn, "HTTP/1.1 415 Unsupported Media Type\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n"+
		"Connection: close\r\n\r\n%s\n", len(notGRPC)+1, notGRPC)
	var end any = c.wire.Conn
	if secured, ok := c.Conn.(*tls.Conn); ok {
		end = secured
	}
	if half, ok := end.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	_ = c.wire.SetReadDeadline(time.Now().Add(lingerTime))
	_, _ = io.CopyN(io.Discard, c.Conn, MaxMessageBytes)
}

// lingerTime is as long as net/http's.
const lingerTime = 500 * time.Millisecond

// gate lets calls of a door in.
type gate struct {
	door *Door
	Procedures
}

// tap admits a call on its connection's reader, before anything of its message is received. It refuses none
// with a deadline, whose timer grpc-go would keep until it ends: serve does.
func (g *gate) tap(ctx context.Context, info *tap.Info) (context.Context, error) {
	at, _ := grpcpeer.FromContext(ctx)
	c := &Call{Context: ctx, Conn: at.AuthInfo.(identity).Conn, path: info.FullMethodName, header: info.Header}
	c.refusal = g.admit(c)
	if c.refusal == nil || errors.Is(c.refusal, ErrToken) {
		return c, nil
	}
	if _, bounded := ctx.Deadline(); bounded {
		return c, nil
	}
	return ctx, g.refuse(c, c.refusal)
}

// admit returns why a call is refused, or nil.
func (g *gate) admit(c *Call) (err error) {
	defer g.recovered(c, &err)
	switch contentType := c.Header("content-type"); {
	case contentType != "application/grpc" && contentType != "application/grpc+proto":
		return status.Error(codes.InvalidArgument, notGRPC)
	case c.Header("origin") != "":
		return status.Error(codes.PermissionDenied, "requests of web pages are refused")
	}
	if err := c.Conn.Full(); err != nil {
		return err
	}
	procedure, found := g.All[c.path]
	if !found {
		return g.Unknown
	}
	c.procedure = procedure
	if procedure.Admit == nil {
		return nil
	}
	if c.User, err = procedure.Admit(c); err == nil {
		c.Conn.ledger.know()
	}
	return err
}

// refuse counts a call that is refused, and returns its status.
func (g *gate) refuse(c *Call, err error) error {
	s := g.statusOf(err)
	if !errors.Is(err, g.Unknown) {
		c.Conn.Count(OutcomeOf(s.Code()), c.Conn.Now())
	}
	return s.Err()
}

func (g *gate) statusOf(err error) *status.Status {
	if s, ok := status.FromError(err); ok {
		return s
	}
	return status.New(g.Code(err), err.Error())
}

// OutcomeOf returns how an error with a code of gRPC counts.
func OutcomeOf(c codes.Code) Outcome {
	refusals := []codes.Code{codes.InvalidArgument, codes.PermissionDenied, codes.Unauthenticated, codes.FailedPrecondition}
	if slices.Contains(refusals, c) {
		return Refused
	}
	return Failed
}

// serve answers a call.
func (g *gate) serve(_ any, s grpc.ServerStream) (err error) {
	c := s.Context().Value(callKey{}).(*Call)
	defer g.recovered(c, &err)
	if c.refusal != nil {
		if errors.Is(c.refusal, ErrToken) {
			c.Conn.refuseToken(c)
		}
		return g.refuse(c, c.refusal)
	}
	message, err := c.receive(s)
	if err != nil {
		return err
	}
	if c.procedure.Stream != nil {
		return g.stream(c, message, s)
	}
	answer, err := c.procedure.Answer(c, message)
	if err != nil {
		return g.statusOf(err).Err()
	}
	return s.SendMsg(answer)
}

// errManyStreams has a client go on as with a server without the procedure. Any other code would have it
// take the server for a failed one, so that strangers with many streams could take it from others.
var errManyStreams = status.Error(codes.Unimplemented, "as many calls of this procedure are open as may be; use one that has one answer")

func (g *gate) stream(c *Call, message []byte, s grpc.ServerStream) error {
	if !g.door.streams.Take(c.Conn.host, maxStreamed, maxStreamedOfHost) {
		return errManyStreams
	}
	defer g.door.streams.Leave(c.Conn.host)
	err := c.procedure.Stream(c, message, func(answer []byte) error { return s.SendMsg(answer) })
	if err != nil {
		return g.statusOf(err).Err()
	}
	return nil
}

// recovered answers and logs a panic, which would end the process, as grpc-go recovers from none.
func (g *gate) recovered(c *Call, err *error) {
	if cause := recover(); cause != nil {
		g.door.Log.Error("a request caused a panic, which is a defect; please report it", "procedure", c.path, "panic", cause, "stack", string(debug.Stack()))
		*err = status.Error(codes.Internal, "the server failed; its log says why")
	}
}
