package remote

import (
	"slices"
	"strconv"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"cellserver/e2e/harness"
	"cellserver/internal/decide/envoyconfig/configpb"
	"cellserver/internal/edge/xds/xdstest"
	"cellserver/internal/test/patience"
	"cellserver/internal/test/redistest"
)

// TestLimitsOverXDSAndAStore: servers over one store count together by limits over xDS, also after these have
// changed, and tell when the store is gone.
func TestLimitsOverXDSAndAStore(t *testing.T) {
	t.Parallel()
	on, xds := redistest.Server(t), xdstest.New(t, "127.0.0.1:0")
	args := []string{"--store-timeout", "5s", "--grpc-addr", "127.0.0.1:0", "--envoy-xds", xds.Addr}
	set := func(perYear uint32) {
		limit := xdstest.Limit("d", "a", perYear)
		limit.Descriptors[0].RateLimit.Unit = configpb.RateLimitUnit_YEAR
		xds.Set(t, strconv.Itoa(int(perYear)), limit)
	}
	set(100)
	var clients []*harness.Kuadrant
	for range 2 {
		p, _ := startRemote(t, "redis://"+on.Addr, args...)
		clients = append(clients, harness.NewKuadrant(t, p, "d", "1"))
	}
	expect := func(want int64) {
		t.Helper()
		for _, c := range clients {
			if !patience.Until(func() bool {
				left, err := c.Left(t.Context(), "a")
				return err == nil && slices.Equal(left, []int64{want})
			}) {
				left, err := c.Left(t.Context(), "a")
				t.Fatalf("%v are left, %v, want %d", left, err, want)
			}
		}
	}
	charge := func(at int, n uint64) {
		t.Helper()
		if _, err := clients[at].Commit(t.Context(), "none", n, "a"); err != nil {
			t.Fatal(err)
		}
	}
	expect(100)
	charge(0, 30)
	charge(1, 30)
	expect(40)
	set(200)
	expect(140)
	charge(1, 100)
	expect(40)
	set(50) // fewer than are charged
	expect(0)
	on.Kill()
	if _, err := clients[0].Left(t.Context(), "a"); status.Code(err) != codes.Unavailable {
		t.Errorf("without the store: %v", err)
	}
}
