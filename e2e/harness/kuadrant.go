package harness

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"cellserver/internal/edge/rls"
	"cellserver/internal/edge/rls/rlspb"
	"cellserver/internal/test/patience"
)

// Kuadrant is a client of the gRPC door, for calls about a descriptor with one value of a key each.
type Kuadrant struct {
	conn   *grpc.ClientConn
	Domain string
	Value  string // of all keys
}

func NewKuadrant(t *testing.T, p *Process, domain, value string) *Kuadrant {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+p.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return &Kuadrant{conn, domain, value}
}

func (k *Kuadrant) of(keys []string) (all []*rlspb.RateLimitDescriptor) {
	for _, key := range keys {
		all = append(all, &rlspb.RateLimitDescriptor{
			Entries: []*rlspb.RateLimitDescriptor_Entry{{Key: key, Value: k.Value}}, HitsAddend: wrapperspb.UInt64(0),
		})
	}
	return all
}

func (k *Kuadrant) invoke(ctx context.Context, path string, in, out any) error {
	ctx, cancel := patience.Context(ctx)
	defer cancel()
	return k.conn.Invoke(ctx, path, in, out)
}

// Reserve returns the id of a reservation, "" if it is denied.
func (k *Kuadrant) Reserve(ctx context.Context, amount uint64, ttl time.Duration, keys ...string) (id string, err error) {
	in, out := &rlspb.ReserveRequest{Domain: k.Domain, Descriptors: k.of(keys), Amount: amount, Ttl: durationpb.New(ttl)}, &rlspb.ReserveResponse{}
	err = k.invoke(ctx, "/"+rls.KuadrantServiceName+"/Reserve", in, out)
	return out.ReservationId, err
}

// Commit charges what was used, and reports whether a reservation was released.
func (k *Kuadrant) Commit(ctx context.Context, id string, used uint64, keys ...string) (released bool, err error) {
	in, out := &rlspb.CommitRequest{Domain: k.Domain, Descriptors: k.of(keys), ReservationId: id, ActualAmount: used}, &rlspb.CommitResponse{}
	err = k.invoke(ctx, "/"+rls.KuadrantServiceName+"/Commit", in, out)
	return out.ReservationReleased, err
}

// Left returns what ShouldRateLimit says to be left of each key's limit.
func (k *Kuadrant) Left(ctx context.Context, keys ...string) (left []int64, err error) {
	in, out := &rlspb.RateLimitRequest{Domain: k.Domain, Descriptors: k.of(keys)}, &rlspb.RateLimitResponse{}
	err = k.invoke(ctx, "/"+rls.ServiceName+"/ShouldRateLimit", in, out)
	for _, of := range out.Statuses {
		left = append(left, int64(of.LimitRemaining))
	}
	return left, err
}

// ExpectLeft compares what is left.
func (k *Kuadrant) ExpectLeft(t testing.TB, want int64, key string) {
	t.Helper()
	if left, err := k.Left(t.Context(), key); err != nil || len(left) != 1 || left[0] != want {
		t.Errorf("%v of %s are left, %v, want %d", left, key, err, want)
	}
}

// IsHeld reports whether a reservation of a minute lasts still that was requested at a time.
func IsHeld(since time.Time) bool { return time.Since(since) < 50*time.Second }

// Round is a test whose reservations must not end meanwhile. It keeps its errors.
type Round struct {
	*testing.T
	Value  string // of keys that no other round has
	Began  time.Time
	errors []string
}

func (r *Round) Errorf(format string, of ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, of...))
}

// WhileHeld runs a round, and another one if it failed and took longer than a reservation lasts.
func WhileHeld(t *testing.T, run func(r *Round)) {
	t.Helper()
	for n := 1; ; n++ {
		r := &Round{T: t, Value: strconv.Itoa(n), Began: time.Now()}
		if run(r); len(r.errors) > 0 && !IsHeld(r.Began) {
			continue
		}
		for _, text := range r.errors {
			t.Error(text)
		}
		return
	}
}
