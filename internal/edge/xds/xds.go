// Package xds gets limits for Envoy over its aggregated discovery service, version 3: the state of the world,
// of envoyproxy/ratelimit's configuration.
package xds

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/edge/xds/xdspb"
)

// TypeURL is that of the resources.
const TypeURL = "type.googleapis.com/ratelimit.config.ratelimit.v3.RateLimitConfig"

// Config configures a Client.
type Config struct {
	Addr            string                                                   // host:port of the server
	Dial            func(ctx context.Context, addr string) (net.Conn, error) // nil for TCP
	TLS             func() (*tls.Config, error)                              // of each connection; nil without TLS
	NodeID          string
	NodeMetadata    map[string]string
	Headers         map[string]string // of each stream
	MaxMessageBytes int
	Options         envoyconfig.Options
	FirstPause      time.Duration // before a second try to connect; doubled, with jitter,
	LongestPause    time.Duration // up to this
	Keep            Keep          // nil for none
	Log             *slog.Logger
}

// Status is what is known of a Client's configuration.
type Status = envoyconfig.XDSStatus

// Client holds the rules that a server gives. It is safe for concurrent use.
type Client struct {
	config Config
	node   *xdspb.Node
	rules  atomic.Pointer[envoyconfig.Rules]
	first  chan struct{} // closed once there are rules

	unsaved    chan saving // the latest answer, until the disk takes it
	unkept     atomic.Bool // the latest answer, as the log has told
	toldUnkept time.Time   // by the stream

	mu     sync.Mutex // rank 90: guards status
	status Status
}

// New returns a Client, with what is kept. Run has it ask the server.
func New(c Config) *Client {
	metadata := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	for name, text := range c.NodeMetadata {
		metadata.Fields[name] = structpb.NewStringValue(text)
	}
	client := &Client{config: c, node: &xdspb.Node{Id: c.NodeID, Metadata: metadata}, first: make(chan struct{}), unsaved: make(chan saving, 1)}
	client.loadKept()
	return client
}

// Rules returns the rules in use, nil before the first.
func (c *Client) Rules() *envoyconfig.Rules { return c.rules.Load() }

// First is closed once there are rules.
func (c *Client) First() <-chan struct{} { return c.first }

func (c *Client) Status() Status {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.status
}

func (c *Client) note(change func(s *Status)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(&c.status)
}

// take replaces the rules by those of an answer.
func (c *Client) take(answer *xdspb.DiscoveryResponse, stale bool) error {
	rules, err := c.read(answer)
	if err != nil {
		return err
	}
	c.rules.Store(rules)
	c.note(func(s *Status) {
		if !s.Loaded {
			close(c.first)
		}
		s.Loaded, s.Version, s.Stale, s.Since, s.Refusal = true, answer.VersionInfo, stale, time.Now(), ""
		if !stale {
			s.Accepted++
		}
	})
	c.config.Log.Info("limits for Envoy read over xDS", "version", answer.VersionInfo, "domains", len(rules.Domains), "rules", rules.Count(), "stale", stale)
	c.warnOf(rules.Notes)
	return nil
}

// warnOf logs the first notes of what may be a mistake: a server may give rise to any number.
func (c *Client) warnOf(notes []envoyconfig.Note) {
	for _, n := range notes[:min(len(notes), maxNotes)] {
		c.config.Log.Warn("a descriptor of the xDS server may be a mistake", "descriptor", cut(n.String(), maxReasonBytes))
	}
	if more := len(notes) - maxNotes; more > 0 {
		c.config.Log.Warn("more descriptors of the xDS server may be mistakes", "count", more)
	}
}

func (c *Client) read(answer *xdspb.DiscoveryResponse) (*envoyconfig.Rules, error) {
	if answer.TypeUrl != TypeURL { // one of another type without resources would take all limits away
		return nil, errType("the answer", answer.TypeUrl)
	}
	all, err := decodeResources(answer.Resources)
	if err != nil {
		return nil, err
	}
	return envoyconfig.OfResources(all, c.config.Options)
}

// Run asks the server until ctx ends and nothing more is kept. It is called once.
func (c *Client) Run(ctx context.Context) {
	var saver sync.WaitGroup
	saver.Go(c.save)
	defer saver.Wait()
	defer close(c.unsaved)
	for pause := (pauses{first: c.config.FirstPause, longest: c.config.LongestPause}); ctx.Err() == nil; {
		useful, err := c.stream(ctx)
		if useful {
			pause.reset()
		}
		why := reason(err)
		c.note(func(s *Status) { s.Connected, s.Failure = false, why })
		if ctx.Err() != nil {
			return
		}
		wait := pause.next()
		c.config.Log.Warn("no xDS server gives limits for Envoy; "+c.meanwhile(), "server", c.config.Addr, "error", why,
			"next_try_in", wait.Round(time.Millisecond))
		sleep(ctx, wait)
	}
}

// meanwhile says what is in use without an answer that could be taken.
func (c *Client) meanwhile() string {
	if c.Rules() == nil {
		return "there are none yet"
	}
	return "the last ones stay in use"
}
