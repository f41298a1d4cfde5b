package rls

import (
	"context"
	"net/http"
	"syscall"
	"testing"

	"connectrpc.com/connect"

	"cellserver/internal/edge/rls/rlspb"
	"cellserver/internal/edge/server"
)

// BenchmarkCall measures a request beside one to a handler that does nothing, on connections of the loopback.
// CPU includes the client's.
func BenchmarkCall(b *testing.B) {
	h := open(b, Config{Rules: rulesOf(b, "domain: d\ndescriptors: [{key: a, rate_limit: {unit: year, requests_per_unit: 4000000000}}]\n")}, server.Limits{MaxClients: 10})
	empty := connect.NewUnaryHandler("/empty", func(context.Context, *connect.Request[rlspb.RateLimitRequest]) (*connect.Response[rlspb.RateLimitResponse], error) {
		return connect.NewResponse(&rlspb.RateLimitResponse{OverallCode: rlspb.RateLimitResponse_OK}), nil
	})
	service := h.service.limit
	for name, handler := range map[string]http.Handler{"empty": empty, "limit": service} {
		b.Run(name, func(b *testing.B) {
			h.service.limit = handler
			r := requestOf(b, "d a=1")
			before := cpuNs()
			for b.Loop() {
				if _, err := h.client.CallUnary(b.Context(), connect.NewRequest(r)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cpuNs()-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

func cpuNs() int64 {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return u.Utime.Nano() + u.Stime.Nano()
}
