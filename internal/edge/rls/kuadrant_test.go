package rls

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"cellserver/internal/edge/rls/rlspb"
	"cellserver/internal/redis/commands/commandstest"
)

const tokens = `
domain: d
descriptors:
- {key: day, rate_limit: {unit: day, requests_per_unit: 1000}}
- {key: minute, rate_limit: {unit: minute, requests_per_unit: 100}}
- {key: one, rate_limit: {unit: day, requests_per_unit: 1}}
- {key: none, rate_limit: {unit: day, requests_per_unit: 0}}
- {key: free, rate_limit: {unlimited: true}}
- {key: trial, shadow_mode: true, rate_limit: {unit: day, requests_per_unit: 10}}
- {key: quota, quota_mode: true, rate_limit: {unit: day, requests_per_unit: 10}}
- {key: bucket, rate_limit: {unit: minute, requests_per_unit: 60, algorithm: token_bucket}}
- {key: fixed, rate_limit: {unit: minute, requests_per_unit: 60, algorithm: fixed_window}}
- {key: approx, rate_limit: {unit: minute, requests_per_unit: 60, algorithm: approximate_window}}
- {key: exact, rate_limit: {unit: minute, requests_per_unit: 60, algorithm: sliding_window}}
`

// TestKuadrant: the calls of the service, beside those of Envoy's. T0 is 20 s after the beginning of a
// minute.
func TestKuadrant(t *testing.T) {
	for name, steps := range map[string][]step{
		"check and report": {
			{"check d one=1", "OK"},
			{"check d one=1", "OK"},
			{"report d one=1", "OK"},
			{"check d one=1", "OVER_LIMIT"},
			{"report d one=1 +7", "OK"},
			{"should d one=1#0", "OVER_LIMIT: OVER_LIMIT 0/1 DAY 6400"}, // 8 of 1
			{"check d one=2 none=1", "OVER_LIMIT"},
			{"check d trial=1 free=1 other=1", "OK"},
			{"report d trial=1 +11", "OK"},
			{"check d trial=1", "OK"},
			{"check d", "OK"},
			{"check nosuch one=1", "OK"},
			{"report d day=1#-5 day=2#0 one=9#0", "OK"},
		},
		"reserve and commit": {
			{"reserve a 300 30s d day=1", "OK"},
			{"should d day=1#0", "OK: OK 700/1000 DAY 6400"},
			{"commit a 120 d day=1", "true"},
			{"should d day=1#0", "OK: OK 880/1000 DAY 6400"},
			{"form rls:day:1:d3:day1:1", "+cl-quota\r\n"},
			{"commit a 120 d day=1", "false"}, // charged twice
			{"should d day=1#0", "OK: OK 760/1000 DAY 6400"},
			{"commit nosuch 60 d day=1", "false"},
			{"should d day=1#0", "OK: OK 700/1000 DAY 6400"},
			{"reserve b 200 30s d day=1", "OK"},
			{"commit b 650 d day=1", "true"},
			{"should d day=1", "OK: OK 49/1000 DAY 6400"},
		},
		"what is held is held from all": {
			{"reserve a 50 30s d minute=1", "OK"},
			{"reserve b 50 30s d minute=1", "OK"},
			{"form rls:minute:1:d6:minute1:1", "+cl-limit\r\n"},
			{"check d minute=1", "OVER_LIMIT"},
			{"should d minute=1", "OVER_LIMIT: OVER_LIMIT 0/100 MINUTE 40"}, // and counted
			{"reserve c 1 30s d minute=1", "OVER_LIMIT"},
			{"commit a 0 d minute=1", "true"},
			{"should d minute=1#0", "OK: OK 49/100 MINUTE 40"},
		},
		"all or none": {
			{"report d minute=1 +90", "OK"},
			{"reserve a 20 30s d day=1 minute=1", "OVER_LIMIT"},
			{"should d day=1#0", "OK: OK 1000/1000 DAY 6400"},
			{"reserve a 10 30s d day=1 minute=1", "OK"},
			{"should d day=1#0 minute=1#0", "OK: OK 990/1000 DAY 6400, OK 0/100 MINUTE 40"},
			{"commit a 5 d day=1 minute=1", "true"},
			{"should d day=1#0 minute=1#0", "OK: OK 995/1000 DAY 6400, OK 5/100 MINUTE 40"},
		},
		"half of each limit": {
			{"reserve a 100 30s d day=1 minute=1", "OK"},
			{"should d day=1#0 minute=1#0", "OK: OK 950/1000 DAY 6400, OK 50/100 MINUTE 40"},
			{"reserve b 100 30s d minute=1", "OVER_LIMIT"}, // all of it must fit
			{"reserve b 40 30s d minute=1", "OK"},
			{"reserve c 2000 30s d day=2", "OVER_LIMIT"},
			{"reserve c 18446744073709551615 30s d day=2", "OVER_LIMIT"},
			{"reserve c 1000 30s d day=2", "OK"},
			{"should d day=2#0", "OK: OK 500/1000 DAY 6400"},
			{"reserve d 1 30s d one=1", "OK"}, // half of which is nothing
			{"should d one=1#0", "OK: OK 1/1 DAY 6400"},
			{"commit d 1 d one=1", "false"},
			{"reserve d 1 30s d one=1", "OVER_LIMIT"},
		},
		"times": {
			{"reserve a 300 30s d day=1", "OK"},
			{"reserve b 300 - d day=2", "OK"},
			{"reserve c 300 1h d day=3", "OK"},
			{"reserve d 300 0s d day=4", "OK"},
			{"should d day=1#0 day=2#0 day=3#0 day=4#0", "OK: OK 700/1000 DAY 6400, OK 700/1000 DAY 6400, OK 700/1000 DAY 6400, OK 1000/1000 DAY 6400"},
			{"wait 30", ""},
			{"should d day=1#0 day=2#0 day=3#0", "OK: OK 1000/1000 DAY 6370, OK 700/1000 DAY 6370, OK 700/1000 DAY 6370"},
			{"commit a 10 d day=1", "false"},
			{"wait 30", ""},
			{"should d day=1#0 day=2#0 day=3#0", "OK: OK 990/1000 DAY 6340, OK 1000/1000 DAY 6340, OK 1000/1000 DAY 6340"},
		},
		"the window's end": {
			{"reserve a 50 - d minute=1 fixed=1", "OK"},
			{"wait 39", ""},
			{"should d minute=1#0 fixed=1#0", "OK: OK 70/100 MINUTE 1, OK 30/60 MINUTE 21"},
			{"wait 1", ""},
			{"should d minute=1#0 fixed=1#0", "OK: OK 100/100 MINUTE 60, OK 30/60 MINUTE 20"},
			{"should d minute=1", "OK: OK 99/100 MINUTE 60"},
			{"commit a 20 d minute=1 fixed=1", "true"}, // of the one that has it, and all of the other's new window
			{"should d minute=1#0 fixed=1#0", "OK: OK 79/100 MINUTE 60, OK 40/60 MINUTE 20"},
		},
		"algorithms": {
			{"reserve a 10 30s d bucket=1 fixed=1 approx=1", "OK"},
			{"should d bucket=1#0 fixed=1#0 approx=1#0", "OK: OK 50/60 MINUTE 10, OK 50/60 MINUTE 60, OK 50/60 MINUTE 120"},
			{"should d bucket=1 fixed=1 approx=1", "OK: OK 49/60 MINUTE 11, OK 49/60 MINUTE 60, OK 49/60 MINUTE 120"},
			{"commit a 4 d bucket=1 fixed=1 approx=1", "true"},
			{"should d bucket=1#0 fixed=1#0 approx=1#0", "OK: OK 55/60 MINUTE 5, OK 55/60 MINUTE 60, OK 55/60 MINUTE 120"},
			{"report d bucket=1 fixed=1 approx=1 exact=1 +70", "OK"},
			{"should d fixed=1 approx=1 exact=1", "OVER_LIMIT: OVER_LIMIT 0/60 MINUTE 60, OVER_LIMIT 0/60 MINUTE 73, OVER_LIMIT 0/60 MINUTE 60"},
			{"reserve b 1 30s d day=1 exact=1", "InvalidArgument: " + errExactReserved.Error()},
			{"should d day=1#0", "OK: OK 1000/1000 DAY 6400"},
			{"commit b 2 d day=1 exact=2", "false"},
			{"should d day=1#0 exact=2#0", "OK: OK 998/1000 DAY 6400, OK 58/60 MINUTE 60"},
		},
		"limits without a state": {
			{"reserve a 1 30s d none=1", "OVER_LIMIT"},
			{"reserve a 0 30s d none=1", "OK"},
			{"reserve a 5 30s d free=1 other=1", "OK"},
			{"commit a 5 d free=1 none=1", "false"},
			{"reserve a 5 30s nosuch day=1", "OK"},
			{"reserve a 5 30s d", "OK"},
			{"reserve a 8 30s d trial=1 quota=1", "OK"},
			{"reserve b 8 30s d trial=1 quota=1", "OK"},
			{"commit b 1 d trial=1 quota=1", "true"},
			{"should d trial=1#0 quota=1#0", "OK: OK 4/10 DAY 6400, OK 4/10 DAY 6400"},
		},
		"the same key twice": {
			{"reserve a 10 30s d day=1 day=1", "OK"},
			{"should d day=1#0", "OK: OK 990/1000 DAY 6400"},
			{"commit a 5 d day=1 day=1", "true"},
			{"report d day=1 day=1", "OK"},
			{"should d day=1#0", "OK: OK 994/1000 DAY 6400"},
		},
		"requests": {
			{"reserve a 1 30s d" + strings.Repeat(" a=1", maxDescriptors+1), "InvalidArgument: " + errTooMany.Error()},
			{"reserve a 1 30s d" + days(maxReserved+1), "InvalidArgument: " + errManyReserved.Error()},
			{"reserve a 1 30s d" + days(maxReserved), "OK"},
			{"commit a 2 d" + days(maxReserved+1), "false"},
			{"should d day=0#0 day=32#0", "OK: OK 997/1000 DAY 6400, OK 998/1000 DAY 6400"},
			{"commit a 2 d" + days(maxReserved), "true"},
			{"should d day=0#0", "OK: OK 996/1000 DAY 6400"},
			{"commit a 18446744073709551615 d day=5", "false"},
			{"should d day=5#0", "OVER_LIMIT: OVER_LIMIT 0/1000 DAY 6400"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newReserver(t, tokens)
			for _, s := range steps {
				if got := r.do(t, s.request); got != s.want {
					t.Errorf("%.80s: got %q, want %q", s.request, got, s.want)
				}
			}
		})
	}
}

func days(n int) (text string) {
	for i := range n {
		text += fmt.Sprint(" day=", i)
	}
	return text
}

// TestKuadrantWithoutDomain: the code is UNKNOWN, and nothing is charged.
func TestKuadrantWithoutDomain(t *testing.T) {
	t.Parallel()
	r := newReserver(t, tokens)
	of := requestOf(t, "d day=1")
	of.Domain = ""
	for _, method := range []string{"CheckRateLimit", "Report"} {
		out := &rlspb.RateLimitResponse{}
		if err := r.invoke(method, of, out); err != nil || out.OverallCode != rlspb.RateLimitResponse_UNKNOWN {
			t.Errorf("%s: %v, %v", method, out, err)
		}
	}
	if out, err := r.reserve(of, 5, time.Second); err != nil || out.Code != rlspb.RateLimitResponse_UNKNOWN || out.ReservationId != "" {
		t.Errorf("Reserve: %v, %v", out, err)
	}
	if released, err := r.commit(of, "x", 5); released || err != nil {
		t.Errorf("Commit: %t, %v", released, err)
	}
	if keys := commandstest.Say(t, r.Session(), "KEYS *\r\n"); keys != "*0\r\n" {
		t.Errorf("there are %q", keys)
	}
}

// TestKuadrantByOtherRules: between Reserve and Commit the rules may change. A limit that holds is settled,
// and another charged; what is held by a limit that is gone ends with its time.
func TestKuadrantByOtherRules(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ rules, want string }{
		{"{key: a, rate_limit: {unit: day, requests_per_unit: 50}}", "true: OK 42/50 DAY 6400"},
		{"{key: a, rate_limit: {unit: day, requests_per_unit: 5}}", "true: OVER_LIMIT 0/5 DAY 6400"},
		{"{key: a, rate_limit: {unit: hour, requests_per_unit: 100}}", "false: OK 92/100 HOUR 2800"},
		{"{key: a, rate_limit: {unit: day, requests_per_unit: 0}}", "true: OVER_LIMIT 0/0 DAY 6400"},
		{"{key: b, rate_limit: {unit: day, requests_per_unit: 5}}", "false: OK 0"},
	} {
		r := newReserver(t, "domain: d\ndescriptors: [{key: a, rate_limit: {unit: day, requests_per_unit: 100}}]\n")
		r.do(t, "reserve a 10 30s d a=1")
		r.configure(t, "domain: d\ndescriptors: ["+tt.rules+"]\n")
		got := r.do(t, "commit a 8 d a=1")
		if _, of, _ := strings.Cut(r.do(t, "should d a=1#0"), ": "); got+": "+of != tt.want {
			t.Errorf("%s: got %s: %s, want %s", tt.rules, got, of, tt.want)
		}
	}
}

// TestKuadrantAsFunnels: a lower or higher rate leaves a funnel's debt its time, with a hold as without.
func TestKuadrantAsFunnels(t *testing.T) {
	t.Parallel()
	const rules = "domain: d\ndescriptors: [{key: a, rate_limit: {unit: minute, requests_per_unit: %d, algorithm: token_bucket}}]\n"
	r := newReserver(t, fmt.Sprintf(rules, 60))
	r.do(t, "report d a=1 a=2 +29")
	r.do(t, "reserve x 1 30s d a=2")
	r.do(t, "report d a=1")
	for _, n := range []int{120, 600, 20, 60} {
		r.configure(t, fmt.Sprintf(rules, n))
		for _, hits := range []string{"#0", "", "#3"} {
			if one, other := r.do(t, "should d a=1"+hits), r.do(t, "should d a=2"+hits); one != other {
				t.Errorf("%d a minute: %s without a hold, %s with one", n, one, other)
			}
		}
	}
}

// TestKuadrantBesideAllOrNothing: what is held counts in a domain whose descriptors are charged all or none.
func TestKuadrantBesideAllOrNothing(t *testing.T) {
	t.Parallel()
	r := newReserver(t, "all_or_nothing: true\n"+strings.TrimSpace(tokens))
	for _, s := range []step{
		{"reserve a 20 30s d bucket=1 fixed=1 approx=1 minute=1", "OK"},
		{"should d bucket=1 fixed=1 approx=1 minute=1 +40", "OK: OK 0/60 MINUTE 60, OK 0/60 MINUTE 60, OK 0/60 MINUTE 120, OK 40/100 MINUTE 40"},
		{"should d bucket=1 minute=1", "OVER_LIMIT: OVER_LIMIT 0/60 MINUTE 1, OK 40/100 MINUTE 40"},
		{"commit a 19 d bucket=1 fixed=1 approx=1 minute=1", "true"},
		{"should d bucket=1 fixed=1 approx=1 minute=1", "OK: OK 0/60 MINUTE 60, OK 0/60 MINUTE 60, OK 0/60 MINUTE 120, OK 40/100 MINUTE 40"},
	} {
		if got := r.do(t, s.request); got != s.want {
			t.Errorf("%s: got %q, want %q", s.request, got, s.want)
		}
	}
}

// TestKuadrantAsShadow: with SHADOW_MODE all may hold, beyond each limit.
func TestKuadrantAsShadow(t *testing.T) {
	t.Parallel()
	r := newReserver(t, tokens)
	r.service.config.Shadow = true
	for _, s := range []step{
		{"reserve a 90 30s d minute=1 none=1", "OK"},
		{"reserve b 90 30s d minute=1 none=1", "OK"},
		{"check d minute=1", "OK"},
		{"commit b 10 d minute=1", "true"},
		{"should d minute=1#0", "OK: OK 40/100 MINUTE 40"}, // 50 are held, and 10 used
	} {
		if got := r.do(t, s.request); got != s.want {
			t.Errorf("%s: got %q, want %q", s.request, got, s.want)
		}
	}
}

// TestKuadrantRights are those that ShouldRateLimit needs.
func TestKuadrantRights(t *testing.T) {
	t.Parallel()
	r := newReserver(t, tokens)
	if _, err := r.Config.Users.Load("", "user default on nopass ~* +@all\nuser envoy on nopass ~rls:day:* +cl.quota\nuser other on nopass ~* +@all -cl.quota"); err != nil {
		t.Fatal(err)
	}
	const other = "ffffffffffffffff"
	if err := r.tokens.Set([]byte(token + " envoy\n" + other + " other\n")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		token, request string
		want           codes.Code
	}{
		{token, "d day=1", codes.OK},
		{token, "d minute=1", codes.PermissionDenied},
		{token, "d day=1 minute=1", codes.PermissionDenied},
		{other, "d day=1", codes.PermissionDenied},
		{"wrong", "d day=1", codes.Unauthenticated},
	} {
		r.ctx = metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+tt.token)
		of := requestOf(t, tt.request)
		_, reserveErr := r.reserve(of, 1, time.Second)
		_, commitErr := r.commit(of, "x", 1)
		out := &rlspb.RateLimitResponse{}
		for _, err := range []error{reserveErr, commitErr, r.invoke("CheckRateLimit", of, out), r.invoke("Report", of, out)} {
			if status.Code(err) != tt.want {
				t.Errorf("%s as %s: got %v, want %v", tt.request, tt.token, err, tt.want)
			}
		}
	}
}

// TestKuadrantIsMonitored: MONITOR has each limit's key and numbers.
func TestKuadrantIsMonitored(t *testing.T) {
	t.Parallel()
	r := newReserver(t, tokens)
	monitor := r.Session()
	commandstest.Say(t, monitor, "MONITOR\r\n")
	for _, line := range []string{"reserve a 10 30s d day=1", "commit a 5 d day=1", "check d day=1", "report d day=1"} {
		r.do(t, line)
	}
	got, _, _ := commandstest.Feed(t, monitor, "")
	for _, want := range []string{
		`"CL.MRESERVE" "1" "CL.QUOTA" "rls:day:1:d3:day1:1" "1000" "day" "10" "EPOCH" "TTL" "30000"`,
		`"1" "CL.QUOTA" "rls:day:1:d3:day1:1" "1000" "day" "5" "EPOCH"`,
		`"CL.QUOTA" "rls:day:1:d3:day1:1" "1000" "day" "0"`,
		`"CL.QUOTA" "rls:day:1:d3:day1:1" "1000" "day" "1" "EPOCH" "DEBIT"`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("MONITOR has no %s:\n%s", want, got)
		}
	}
}

// TestKuadrantCounts compares the metrics: what is charged is within the limit, and what is denied over it.
func TestKuadrantCounts(t *testing.T) {
	t.Parallel()
	r := newReserver(t, tokens)
	for _, line := range []string{
		"report d minute=1 +60", "reserve a 41 30s d minute=1 day=1", "reserve b 10 30s d minute=1", "commit b 7 d minute=1", "check d minute=1", "check d none=1",
	} {
		r.do(t, line)
	}
	if got, want := r.rows(), []string{"d|day 0 0 0 0 0", "d|minute 108 67 0 41 0", "d|none 1 0 0 1 0"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestKuadrantAtOnce: of reservations made and settled at once, no more are held than fit, and the sum is
// what was used.
func TestKuadrantAtOnce(t *testing.T) {
	t.Parallel()
	r := newReserver(t, tokens)
	of := requestOf(t, "d day=1 minute=1")
	var used, denied, open atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				out, err := r.reserve(of, 20, time.Minute)
				if err != nil {
					t.Error(err)
					return
				}
				if out.Code != rlspb.RateLimitResponse_OK {
					denied.Add(1)
					continue
				}
				if held := open.Add(20) + used.Load(); held > 100 {
					t.Errorf("%d units are held or used of 100", held)
				}
				open.Add(-20)
				released, err := r.commit(of, out.ReservationId, 1)
				if !released || err != nil {
					t.Errorf("released %t, %v", released, err)
					return
				}
				used.Add(1)
			}
		})
	}
	wg.Wait()
	want := fmt.Sprintf("OK: OK %d/1000 DAY 6400, OK %d/100 MINUTE 40", 1000-used.Load(), 100-used.Load())
	if got := r.do(t, "should d day=1#0 minute=1#0"); got != want || used.Load() < 80 || denied.Load() == 0 {
		t.Errorf("got %s, want %s; %d used, %d denied", got, want, used.Load(), denied.Load())
	}
}
