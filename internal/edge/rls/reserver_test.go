package rls

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"cellserver/internal/decide/envoyconfig"
	"cellserver/internal/edge/rls/rlspb"
	"cellserver/internal/edge/server"
	"cellserver/internal/redis/commands/commandstest"
)

// reserver is a client of Kuadrant's service, which knows its reservations by names.
type reserver struct {
	*house
	ctx   context.Context
	rules atomic.Pointer[envoyconfig.Rules]
	ids   map[string]string
}

func newReserver(t testing.TB, yaml string) *reserver {
	t.Helper()
	r := &reserver{ctx: t.Context(), ids: map[string]string{}}
	r.house = open(t, Config{Rules: r.rules.Load}, server.Limits{MaxClients: 100})
	r.configure(t, yaml)
	return r
}

func (r *reserver) configure(t testing.TB, yaml string) {
	t.Helper()
	r.rules.Store(rulesOf(t, yaml)())
}

func (r *reserver) invoke(method string, in, out proto.Message) error {
	return r.client.Invoke(r.ctx, "/"+KuadrantServiceName+"/"+method, in, out)
}

func (r *reserver) reserve(q *rlspb.RateLimitRequest, amount uint64, ttl time.Duration) (*rlspb.ReserveResponse, error) {
	in, out := &rlspb.ReserveRequest{Domain: q.Domain, Descriptors: q.Descriptors, Amount: amount}, &rlspb.ReserveResponse{}
	if ttl >= 0 {
		in.Ttl = durationpb.New(ttl)
	}
	return out, r.invoke("Reserve", in, out)
}

func (r *reserver) commit(q *rlspb.RateLimitRequest, id string, actual uint64) (released bool, err error) {
	in := &rlspb.CommitRequest{Domain: q.Domain, Descriptors: q.Descriptors, ReservationId: id, ActualAmount: actual}
	out := &rlspb.CommitResponse{}
	err = r.invoke("Commit", in, out)
	return out.ReservationReleased, err
}

// do does what a line says, and returns the answer as text:
//
//	check REQUEST | report REQUEST | should REQUEST
//	reserve NAME AMOUNT TTL REQUEST, where a TTL of "-" is none
//	commit NAME ACTUAL REQUEST, where a name that was not reserved is an unknown id
//	wait SECONDS | form KEY
func (r *reserver) do(t testing.TB, line string) string {
	t.Helper()
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case "wait":
		r.Clock.Advance(int64(number(t, rest)) * 1e9)
		return ""
	case "form":
		return commandstest.Say(t, r.Session(), "TYPE "+rest+"\r\n")
	case "should":
		return textOf(r.ask(t, requestOf(t, rest), ""))
	case "check", "report":
		out := &rlspb.RateLimitResponse{}
		err := r.invoke(map[string]string{"check": "CheckRateLimit", "report": "Report"}[verb], requestOf(t, rest), out)
		return strings.TrimSuffix(textOf(out, err), ": ")
	}
	name, rest, _ := strings.Cut(rest, " ")
	amount, rest, _ := strings.Cut(rest, " ")
	if verb == "commit" {
		released, err := r.commit(requestOf(t, rest), r.ids[name], number(t, amount))
		if err != nil {
			return textOf(nil, err)
		}
		return fmt.Sprint(released)
	}
	ttl, rest, _ := strings.Cut(rest, " ")
	limit, _ := time.ParseDuration(ttl)
	if ttl == "-" {
		limit = -1
	}
	out, err := r.reserve(requestOf(t, rest), number(t, amount), limit)
	if err != nil {
		return textOf(nil, err)
	}
	if (out.ReservationId != "") != (out.Code == rlspb.RateLimitResponse_OK) {
		t.Errorf("%s: %s with the id %q", line, out.Code, out.ReservationId)
	}
	r.ids[name] = out.ReservationId
	return out.Code.String()
}
