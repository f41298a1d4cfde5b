package rls

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"cellserver/internal/decide/clients"
	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/edge/door"
	"cellserver/internal/edge/rls/rlspb"
	"cellserver/internal/edge/server"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/wire/peer"
)

// house is a door with the service, on the harness's clock.
type house struct {
	*commandstest.Harness
	service *Service
	door    *door.Door
	server  *server.Server
	tokens  door.Tokens
	refuse  string // what Admit returns
	url     string
	http    *http.Client
	client  *grpc.ClientConn
}

// rulesOf returns a configuration.
func rulesOf(t testing.TB, yaml string) func() *envoyconfig.Rules {
	t.Helper()
	rules, err := envoyconfig.RulesOf([]envoyconfig.File{{Path: "f", Text: []byte(yaml)}})
	if err != nil {
		t.Fatal(err)
	}
	return func() *envoyconfig.Rules { return rules }
}

func open(t testing.TB, c Config, limits server.Limits, change ...func(*commands.Config)) *house {
	t.Helper()
	h := &house{Harness: commandstest.New(change...)}
	log := slog.New(slog.DiscardHandler)
	c.Calendars = h.Engine.Config.NamedLimits.Calendars()
	if c.Rules == nil {
		c.Rules = func() *envoyconfig.Rules { return nil }
	}
	if c.Ready == nil {
		c.Ready = func() error { return nil }
	}
	if c.Loading == nil {
		c.Loading = func() bool { return false }
	}
	now := h.Clock.Now
	h.service = New(c)
	h.server = server.New(server.Config{Now: now, Log: log, Limits: limits})
	h.door = door.NewGRPC(door.Config{
		Name: peer.GRPC, Server: h.server, Users: h.Config.Users, Tokens: &h.tokens, Logins: &clients.Logins{}, Now: now, Log: log,
		NewSession: func(p peer.Peer, c peer.Conn) door.Session { return h.Engine.NewSession(p, c) },
		Admit:      func(peer.Peer) string { return h.refuse },
	}, h.service.Procedures())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- h.door.Serve(l) }()
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	h.url, h.http = "http://"+l.Addr().String(), &http.Client{Transport: transport}
	h.client = h.dial(t)
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = h.client.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		h.door.Shutdown(ctx)
		if err := <-ended; err != nil {
			t.Errorf("the door ended with %v", err)
		}
	})
	return h
}

// ask sends a request with a token, if it is not empty.
func (h *house) ask(t testing.TB, r *rlspb.RateLimitRequest, token string) (*rlspb.RateLimitResponse, error) {
	t.Helper()
	ctx := t.Context()
	if token != "" {
		ctx = metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	return call(ctx, h.client, r)
}

// dial returns a client with a connection of its own.
func (h *house) dial(t testing.TB) *grpc.ClientConn {
	t.Helper()
	client, err := grpc.NewClient("passthrough:///"+strings.TrimPrefix(h.url, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func call(ctx context.Context, client *grpc.ClientConn, r *rlspb.RateLimitRequest) (*rlspb.RateLimitResponse, error) {
	response := &rlspb.RateLimitResponse{}
	if err := client.Invoke(ctx, procedure, r, response); err != nil {
		return nil, err
	}
	return response, nil
}

// expect compares the response to a request of text.
func (h *house) expect(t testing.TB, request, want string) {
	t.Helper()
	response, err := h.ask(t, requestOf(t, request), "")
	if got := textOf(response, err); got != want {
		t.Errorf("%s: got %s, want %s", request, got, want)
	}
}

// requestOf reads "DOMAIN DESCRIPTOR ... [+HITS]", where a descriptor is "key=value,key=value", followed by
// "#N" for its own hits, "#-N" to give some back, and "!N/UNIT" or "!N/UNIT*M" for its own limit.
func requestOf(t testing.TB, text string) *rlspb.RateLimitRequest {
	t.Helper()
	words := strings.Fields(text)
	r := &rlspb.RateLimitRequest{Domain: words[0]}
	for _, word := range words[1:] {
		if hits, ok := strings.CutPrefix(word, "+"); ok {
			r.HitsAddend = uint32(number(t, hits))
			continue
		}
		d := &rlspb.RateLimitDescriptor{}
		word, limit, _ := strings.Cut(word, "!")
		word, hits, _ := strings.Cut(word, "#")
		if limit != "" {
			count, unit, _ := strings.Cut(limit, "/")
			unit, units, multiplied := strings.Cut(unit, "*")
			d.Limit = &rlspb.RateLimitDescriptor_RateLimitOverride{
				RequestsPerUnit: uint32(number(t, count)), Unit: rlspb.RateLimitUnit(rlspb.RateLimitUnit_value[unit]),
			}
			if multiplied {
				d.Limit.UnitMultiplier = wrapperspb.UInt32(uint32(number(t, units)))
			}
		}
		if hits != "" {
			hits, d.IsNegativeHits = strings.CutPrefix(hits, "-")
			d.HitsAddend = wrapperspb.UInt64(number(t, hits))
		}
		for entry := range strings.SplitSeq(word, ",") {
			key, value, _ := strings.Cut(entry, "=")
			d.Entries = append(d.Entries, &rlspb.RateLimitDescriptor_Entry{Key: key, Value: value})
		}
		r.Descriptors = append(r.Descriptors, d)
	}
	return r
}

func number(t testing.TB, text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// textOf writes an error, or a response as "CODE: STATUS, ...", where a status is "CODE REMAINING" or "CODE
// REMAINING/LIMIT UNIT RESET".
func textOf(r *rlspb.RateLimitResponse, err error) string {
	if err != nil {
		return status.Code(err).String() + ": " + status.Convert(err).Message()
	}
	var statuses []string
	for _, s := range r.Statuses {
		text := fmt.Sprint(s.Code, " ", s.LimitRemaining)
		if s.CurrentLimit != nil {
			text += fmt.Sprint("/", s.CurrentLimit.RequestsPerUnit, " ", s.CurrentLimit.Unit, " ", s.DurationUntilReset.Seconds)
		}
		statuses = append(statuses, text)
	}
	text := r.OverallCode.String() + ": " + strings.Join(statuses, ", ")
	for _, header := range r.ResponseHeadersToAdd {
		text += " " + header.Key + "=" + header.Value
	}
	return text
}

// rows returns the metrics as "DOMAIN|DESCRIPTOR total within near over shadow".
func (h *house) rows() (rows []string) {
	h.service.Metrics.Each(func(domain, descriptor string, c *Counts) {
		rows = append(rows, fmt.Sprint(domain, "|", descriptor, " ", c.TotalHits.Load(), " ", c.WithinLimit.Load(), " ",
			c.NearLimit.Load(), " ", c.OverLimit.Load(), " ", c.ShadowMode.Load()))
	})
	slices.Sort(rows)
	return rows
}
