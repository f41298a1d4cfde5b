package rls

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"cellserver/internal/edge/server"
	"cellserver/internal/test/patience"
)

// TestHealth: the service's health is its readiness, the server's is always good, and others are unknown,
// each in the way of grpc.health.v1.
func TestHealth(t *testing.T) {
	var unready atomic.Bool
	h := open(t, Config{Ready: func() error {
		if unready.Load() {
			return errors.New("shutting down")
		}
		return nil
	}}, server.Limits{MaxClients: 10})
	client := grpc_health_v1.NewHealthClient(h.client)
	const unknown = grpc_health_v1.HealthCheckResponse_SERVICE_UNKNOWN
	for _, tt := range []struct {
		service string
		unready bool
		want    grpc_health_v1.HealthCheckResponse_ServingStatus
	}{
		{"", false, grpc_health_v1.HealthCheckResponse_SERVING},
		{"ratelimit", false, grpc_health_v1.HealthCheckResponse_SERVING},
		{ServiceName, false, grpc_health_v1.HealthCheckResponse_SERVING},
		{"", true, grpc_health_v1.HealthCheckResponse_SERVING},
		{"ratelimit", true, grpc_health_v1.HealthCheckResponse_NOT_SERVING},
		{ServiceName, true, grpc_health_v1.HealthCheckResponse_NOT_SERVING},
		{"Ratelimit", false, unknown},
		{"nosuch", true, unknown},
	} {
		unready.Store(tt.unready)
		request := &grpc_health_v1.HealthCheckRequest{Service: tt.service}
		got, err := client.Check(t.Context(), request)
		if tt.want == unknown {
			if status.Code(err) != codes.NotFound {
				t.Errorf("Check %q: got %v", tt.service, err)
			}
		} else if err != nil || got.Status != tt.want {
			t.Errorf("Check %q, unready %t: got %v, %v", tt.service, tt.unready, got, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		watch, err := client.Watch(ctx, request)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := watch.Recv(); err != nil || got.Status != tt.want {
			t.Errorf("Watch %q, unready %t: got %v, %v", tt.service, tt.unready, got, err)
		}
		cancel()
	}
	if _, err := client.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: string(make([]byte, maxHealthBytes))}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a long name: %v", err)
	}
}

// TestWatch: changes are told once each, and a door that ends tells the last one and ends its watchers.
func TestWatch(t *testing.T) {
	var unready atomic.Bool
	h := open(t, Config{Ready: func() error {
		if unready.Load() {
			return errors.New("shutting down")
		}
		return nil
	}}, server.Limits{MaxClients: 10})
	h.service.lookEvery = time.Millisecond
	client := grpc_health_v1.NewHealthClient(h.client)
	next := func(w grpc_health_v1.Health_WatchClient) string {
		r, err := w.Recv()
		if err != nil {
			return status.Code(err).String()
		}
		return r.Status.String()
	}
	watch, err := client.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: "ratelimit"})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"SERVING", "NOT_SERVING", "SERVING"} {
		unready.Store(i == 1)
		if got := next(watch); got != want {
			t.Fatalf("change %d: got %s, want %s", i, got, want)
		}
	}
	h.service.lookEvery = time.Hour // the end is told at once
	var all []grpc_health_v1.Health_WatchClient
	for _, name := range []string{"ratelimit", "", "nosuch"} {
		w, err := client.Watch(t.Context(), &grpc_health_v1.HealthCheckRequest{Service: name})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := next(w), map[string]string{"ratelimit": "SERVING", "": "SERVING", "nosuch": "SERVICE_UNKNOWN"}[name]; got != want {
			t.Fatalf("%q: got %s, want %s", name, got, want)
		}
		all = append(all, w)
	}
	unready.Store(true)
	ctx, cancel := patience.Context(context.Background())
	defer cancel()
	h.door.Shutdown(ctx)
	if ctx.Err() != nil {
		t.Error("the door has waited for its watchers in vain")
	}
	for i, want := range []string{"NOT_SERVING", "Unavailable", "Unavailable"} {
		if got := next(all[i]); got != want {
			t.Errorf("watcher %d of a door that ends: got %s, want %s", i, got, want)
		}
	}
}
