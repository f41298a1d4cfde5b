package operation

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cellserver/e2e/harness"
)

// askJSON asks /json about descriptors of the domain d, each of one key, and returns the status and the
// answer without spaces.
func askJSON(t *testing.T, addr string, keys ...string) (status, answer string) {
	t.Helper()
	var descriptors []string
	for _, key := range keys {
		descriptors = append(descriptors, `{"entries": [{"key": "`+key+`"}]}`)
	}
	body := `{"domain": "d", "descriptors": [` + strings.Join(descriptors, ", ") + "]}"
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+addr+"/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	b, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return strconv.Itoa(response.StatusCode), strings.ReplaceAll(string(b), " ", "")
}

// TestRatelimitVariables: what a variable does to calls, by the program started with it and without it. The
// limits are one of a, three of b and ten of c, a year each.
func TestRatelimitVariables(t *testing.T) {
	t.Parallel()
	const config = "domain: d\ndescriptors:\n- {key: a, rate_limit: {unit: year, requests_per_unit: 1}}\n" +
		"- {key: b, rate_limit: {unit: year, requests_per_unit: 3}}\n- {key: c, rate_limit: {unit: year, requests_per_unit: 10}}\n"
	for _, tt := range []struct {
		name, env string // env may have several
		files     map[string]string
		calls     string // their keys
		want      string // their statuses
		has       string // of the last answer
		stats     string // a line
	}{
		{name: "defaults", calls: "a a", want: "200 429", has: `"overallCode":"OVER_LIMIT"`, stats: ".d.a.near_limit: 1"},
		{name: "SHADOW_MODE", env: "SHADOW_MODE=true", calls: "a a", want: "200 200", has: `"overallCode":"OK"`},
		{name: "QUOTA_MODE", env: "QUOTA_MODE=1", calls: "a,b a,b a", want: "200 200 429"}, // denies by quotas that all are used
		{name: "headers", env: "LIMIT_RESPONSE_HEADERS_ENABLED=true LIMIT_LIMIT_HEADER=x-l LIMIT_REMAINING_HEADER=x-m LIMIT_RESET_HEADER=x-n",
			calls: "b", want: "200", has: `[{"key":"x-l","value":"3"},{"key":"x-m","value":"2"},{"key":"x-n",`},
		{name: "metadata", env: "RESPONSE_DYNAMIC_METADATA=true", calls: "a", want: "200", has: `"dynamicMetadata":{`},
		{name: "NEAR_LIMIT_RATIO", env: "NEAR_LIMIT_RATIO=0.1", calls: "c c c", want: "200 200 200", stats: ".d.c.near_limit: 2"},
		{name: "NEAR_LIMIT_RATIO of 2", env: "NEAR_LIMIT_RATIO=2", calls: "a a", want: "200 429", stats: ".d.a.near_limit: 0"},
		{name: "NEAR_LIMIT_RATIO of 0", env: "NEAR_LIMIT_RATIO=0", calls: "c", want: "200", stats: ".d.c.near_limit: 1"},
		{name: "all are charged", calls: "a,b a,b b b", want: "200 429 200 429"},
		{name: "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT", env: "STOP_CACHE_KEY_INCREMENT_WHEN_OVERLIMIT=true", calls: "a,b a,b b b", want: "200 429 200 200"},
		{name: "MERGE_DOMAIN_CONFIG", env: "MERGE_DOMAIN_CONFIG=true", files: map[string]string{"more": limits("d", "1")}, calls: "a a k,a", want: "200 429 429"},
		{name: "RUNTIME_IGNOREDOTFILES", env: "RUNTIME_IGNOREDOTFILES=true", files: map[string]string{".mistake": "domain"}, calls: "a a", want: "200 429"},
		{name: "without an effect", env: "EXPIRATION_JITTER_MAX_SECONDS=10 RUNTIME_WATCH_ROOT=false USE_STATSD=true TRACING_ENABLED=true", calls: "a a", want: "200 429"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			dir := filepath.Join(root, "limits")
			if err := os.Mkdir(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(dir, "d"), config)
			for name, text := range tt.files {
				writeFile(t, filepath.Join(dir, name), text)
			}
			p := harness.StartRatelimit(t, slices.Concat([]string{"RUNTIME_ROOT=" + root, "RUNTIME_APPDIRECTORY=limits"}, strings.Fields(tt.env)))
			var statuses []string
			var last string
			for _, call := range strings.Fields(tt.calls) {
				status, answer := askJSON(t, p.Ratelimit.HealthAndJSON, strings.Split(call, ",")...)
				statuses, last = append(statuses, status), answer
			}
			if got := strings.Join(statuses, " "); got != tt.want || !strings.Contains(last, tt.has) {
				t.Errorf("%s, %s; want %s, %s", got, last, tt.want, tt.has)
			}
			if _, stats := get(t, "http://"+p.Ratelimit.Debug+"/stats"); !strings.Contains(stats, tt.stats) {
				t.Errorf("no %q in\n%s", tt.stats, stats)
			}
		})
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestHealthyWithConfig: without a domain the service is not healthy, if that is asked for.
func TestHealthyWithConfig(t *testing.T) {
	t.Parallel()
	for env, want := range map[string]int{
		"HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED=false": http.StatusOK, "HEALTHY_WITH_AT_LEAST_ONE_CONFIG_LOADED=true": http.StatusInternalServerError,
	} {
		p := harness.StartRatelimit(t, []string{"RUNTIME_ROOT=/nosuch", env})
		p.Eventually(t, fmt.Sprintf("answer %d with %s", want, env), func() bool {
			status, _ := get(t, "http://"+p.Ratelimit.HealthAndJSON+"/healthcheck")
			return status == want
		})
	}
}

func limits(domain, number string) string {
	return "domain: " + domain + "\ndescriptors: [{key: k, rate_limit: {unit: year, requests_per_unit: " + number + "}}]\n"
}
