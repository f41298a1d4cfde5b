package xds

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"cellserver/internal/edge/xds/xdspb"
)

const (
	procedure = "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"

	// silence is how long a server may be silent at a stream's beginning until it is asked for all it has:
	// go-control-plane does not answer to the version it has itself, which may be of versions counted anew.
	silence = 10 * time.Second
	// askedAnew is behind the last accepted version in that question, so that no server has it.
	askedAnew = "-asked-anew"

	firstRefusalPause, longestRefusalPause = time.Second, time.Minute

	// readPause is between answers: a server may send others without waiting for requests.
	readPause = 100 * time.Millisecond
	// readShare is how many times longer than an answer took to read the pause after it is at least, so that
	// a server with large answers has a tenth of a processor.
	readShare = 9

	maxHeaderBytes  = 64 << 10 // of a server's headers, and of its trailers
	maxRefusalBytes = 4 << 10  // of a text that is sent
	maxReasonBytes  = 512      // of a server's text that is shown
	maxNotes        = 10       // of an answer that are logged
)

// pauses are between tries.
type pauses struct{ first, longest, last time.Duration }

func (p *pauses) reset() { p.last = 0 }

// next returns one twice as long as the last, of which half or more is waited.
func (p *pauses) next() time.Duration {
	p.last = max(p.first, min(2*p.last, p.longest))
	return p.last/2 + rand.N(p.last/2+1)
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// reason returns a stream's error in a line: a server may say anything.
func reason(err error) string {
	text := err.Error()
	switch s, isStatus := status.FromError(err); {
	case errors.Is(err, io.EOF):
		text = "the server has ended the stream"
	case isStatus:
		text = s.Code().String() + ": " + s.Message()
	}
	return strings.Join(strings.Fields(cut(text, maxReasonBytes)), " ")
}

// cut returns the beginning of a text, in UTF-8.
func cut(text string, most int) string { return strings.ToValidUTF8(text[:min(len(text), most)], "") }

func (c *Client) connect() (*grpc.ClientConn, error) {
	secured := insecure.NewCredentials()
	if c.config.TLS != nil {
		config, err := c.config.TLS()
		if err != nil {
			return nil, err
		}
		secured = credentials.NewTLS(config)
	}
	dial := c.config.Dial
	if dial == nil {
		dial = dialTCP
	}
	return grpc.NewClient("passthrough:///"+c.config.Addr,
		grpc.WithTransportCredentials(secured),
		grpc.WithContextDialer(dial),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(c.config.MaxMessageBytes), grpc.ForceCodecV2(codec{})),
		grpc.WithMaxHeaderListSize(maxHeaderBytes),
		grpc.WithDisableServiceConfig(),
	)
}

func dialTCP(ctx context.Context, addr string) (net.Conn, error) {
	// A server may forbid pings of gRPC, but not of TCP.
	alive := net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 3}
	return (&net.Dialer{KeepAliveConfig: alive}).DialContext(ctx, "tcp", addr)
}

// stream follows a stream to its end, and reports whether it was of use.
func (c *Client) stream(ctx context.Context) (useful bool, err error) {
	conn, err := c.connect()
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close() }()
	ctx, cancel := context.WithCancel(metadata.NewOutgoingContext(ctx, metadata.New(c.config.Headers)))
	defer cancel()
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, procedure)
	if err != nil {
		return false, err
	}
	f := &follower{client: c, stream: s, version: c.Status().Version}
	if err := f.send(f.version, "", ""); err != nil {
		return false, err
	}
	c.note(func(s *Status) { s.Connected, s.Failure = true, "" })
	answers, ended := make(chan *xdspb.DiscoveryResponse), make(chan error, 1)
	go func() { ended <- receive(ctx, s, answers) }()
	return f.follow(ctx, answers, ended)
}

func receive(ctx context.Context, s grpc.ClientStream, to chan<- *xdspb.DiscoveryResponse) error {
	for {
		var message []byte
		if err := s.RecvMsg(&message); err != nil {
			return err
		}
		answer, err := decodeAnswer(message)
		if err != nil {
			return err
		}
		select {
		case to <- answer:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// follower answers a stream's answers.
type follower struct {
	client  *Client
	stream  grpc.ClientStream
	version string // last accepted

	refused string // version, of the latest answer
	pause   time.Duration
	useful  bool
}

func (f *follower) follow(ctx context.Context, answers <-chan *xdspb.DiscoveryResponse, ended <-chan error) (useful bool, err error) {
	silent := time.NewTimer(silence)
	defer silent.Stop()
	var (
		from         = answers // nil while none is read
		resume, told <-chan time.Time
		tell         func() error
	)
	for err == nil {
		select {
		case answer := <-from:
			silent.Stop()
			from, told = nil, nil // nobody waits for a refusal of an earlier answer
			began := time.Now()
			var wait time.Duration
			wait, tell = f.read(ctx, answer)
			resume = time.After(max(readPause, readShare*time.Since(began)))
			if wait > 0 {
				told = time.After(wait)
			} else {
				err = tell()
			}
		case <-resume:
			from = answers
		case <-told:
			err = tell()
		case <-silent.C:
			f.useful = true
			if f.client.Rules() != nil {
				err = f.send(f.version+askedAnew, "", "")
			}
		case err = <-ended:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return f.useful, err
}

// read takes or refuses an answer, and returns how long to wait before that is told: a server that is refused
// may send the same again at once.
func (f *follower) read(ctx context.Context, answer *xdspb.DiscoveryResponse) (wait time.Duration, tell func() error) {
	c := f.client
	err := c.take(answer, false)
	if err == nil {
		f.version, f.refused, f.pause, f.useful = answer.VersionInfo, "", 0, true
		return 0, func() error {
			// A process that ends right after the acknowledgement has these limits at its next start.
			if err := c.keep(ctx, answer); err != nil {
				return err
			}
			return f.send(f.version, answer.Nonce, "")
		}
	}
	c.note(func(s *Status) { s.Rejected, s.Refusal = s.Rejected+1, err.Error() })
	if f.pause > 0 && f.refused == answer.VersionInfo {
		wait = f.pause
		f.pause = min(2*f.pause, longestRefusalPause)
	} else {
		f.pause = firstRefusalPause
	}
	f.refused = answer.VersionInfo
	return wait, func() error {
		c.config.Log.Error("the xDS server's limits for Envoy are refused; "+c.meanwhile(), "version", answer.VersionInfo, "error", err,
			"hint", "correct them in the server")
		return f.send(f.version, answer.Nonce, cut(err.Error(), maxRefusalBytes))
	}
}

// send asks for what comes after a version, and says why another one was refused.
func (f *follower) send(version, nonce, refusal string) error {
	request := &xdspb.DiscoveryRequest{VersionInfo: version, Node: f.client.node, TypeUrl: TypeURL, ResponseNonce: nonce}
	if refusal != "" {
		request.ErrorDetail = &xdspb.Status{Code: int32(codes.InvalidArgument), Message: refusal}
	}
	if err := f.stream.SendMsg(request); !errors.Is(err, io.EOF) {
		return err
	}
	return nil // the stream has ended, and receiving tells why
}
