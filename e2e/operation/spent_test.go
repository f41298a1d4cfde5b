package operation

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/e2e/harness"
)

// budgets is a file of limits whose day does not end during a test.
func budgets(t *testing.T) (path string) {
	t.Helper()
	eastern := 12 - time.Now().UTC().Hour() // hours by which noon is earlier there
	const quota = "{rules: [{algorithm: quota, max_count: %d, every: day, time_zone: Etc/GMT%+d}], unit: %q}"
	return harness.WriteFile(t, "limits:\n  org: "+strings.Replace(fmt.Sprintf(quota, 1000, -eastern, ""), `, unit: ""`, "", 1)+
		"\n  spend: "+fmt.Sprintf(quota, 50_000_000, -eastern, "usd")+"\n")
}

// spent returns the series of a server's spending, by their end.
func spent(t *testing.T, p *harness.Process) string {
	t.Helper()
	const prefix = "cellserver_limit_spent_today_"
	var all []string
	_, text := p.Fetch(t, "/metrics", "")
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), prefix); ok {
			all = append(all, rest)
		}
	}
	return strings.Join(all, " ")
}

func awaitSpent(t *testing.T, p *harness.Process, want string) {
	t.Helper()
	p.Eventually(t, "have spent "+want, func() bool { return spent(t, p) == want })
}

func say(t *testing.T, client *redis.Client, words string) {
	t.Helper()
	var args []any
	for word := range strings.FieldsSeq(words) {
		args = append(args, word)
	}
	if err := client.Do(t.Context(), args...).Err(); err != nil {
		t.Fatalf("%s: %v", words, err)
	}
}

// TestSpentOfAPair: the leader says what was spent, and so does the replica once it leads.
func TestSpentOfAPair(t *testing.T) {
	t.Parallel()
	file := budgets(t)
	leader := harness.StartServer(t, "--limits-file", file)
	replica := harness.StartServer(t, "--limits-file", file, "--replica-of", leader.Addr)
	client, second := harness.Database(t, leader, 0), harness.Database(t, replica, 0)
	replica.Eventually(t, "follow the leader", func() bool {
		return strings.Contains(second.Info(t.Context(), "replication").Val(), "master_link_status:up")
	})
	say(t, client, "CL.MRESERVE 2 org acme 300 spend acme 20000 TTL 1h ID x")
	say(t, client, "CL.MCOMMIT x 2 org acme 120 spend acme 25000")
	say(t, client, "CL.CHECK org other 7 DEBIT")
	const want = `dollars{limit="spend"} 0.025 units{limit="org"} 127`
	awaitSpent(t, leader, want)
	replica.Eventually(t, "have all keys", func() bool {
		n, err := client.Wait(t.Context(), 1, time.Second).Result()
		return n == 1 && err == nil
	})
	if got := spent(t, replica); got != "" {
		t.Errorf("the replica has %s", got)
	}
	say(t, second, "REPLICAOF NO ONE")
	awaitSpent(t, replica, want)
	say(t, client, "REPLICAOF "+strings.Replace(replica.Addr, ":", " ", 1))
	awaitSpent(t, leader, "")
}

// TestSpentOverAStore: each server says what it has decided itself, so that a sum is right.
func TestSpentOverAStore(t *testing.T) {
	t.Parallel()
	file, store := budgets(t), "redis://"+harness.StartRedis(t).Addr
	args := []string{"--limits-file", file, "--store", store, "--store-timeout", "30s"}
	first, other := harness.StartServer(t, args...), harness.StartServer(t, args...)
	client, second := harness.Database(t, first, 0), harness.Database(t, other, 0)
	awaitSpent(t, first, "")
	for p, c := range map[*harness.Process]*redis.Client{first: client, other: second} {
		p.Eventually(t, "decide", func() bool { return c.Do(t.Context(), "CL.CHECK", "org", "k", 0).Err() == nil })
	}
	say(t, client, "CL.MRESERVE 2 org {acme} 300 spend {acme} 20000 TTL 1h ID x")
	awaitSpent(t, first, `dollars{limit="spend"} 0.02 units{limit="org"} 300`)
	say(t, second, "CL.MCOMMIT x 2 org {acme} 120 spend {acme} 25000")
	say(t, second, "CL.CHECK org other 7 DEBIT")
	awaitSpent(t, other, `dollars{limit="spend"} 0.005 units{limit="org"} -173`)
	awaitSpent(t, first, `dollars{limit="spend"} 0.02 units{limit="org"} 300`)
}
