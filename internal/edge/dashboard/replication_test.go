package dashboard

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"cellserver/internal/edge/dashboard/history"
	"cellserver/internal/edge/dashboard/words"
	"cellserver/internal/store/replicas"
)

// leaderStatus is a leader with two replicas, of which one takes all states.
func leaderStatus() replicas.Status {
	return replicas.Status{
		Offset: 3 << 20, Backlog: 2 << 20, MaxBacklog: 16 << 20, Good: 1,
		Replicas: []replicas.ReplicaStatus{
			{Address: replicas.Address{Host: "192.0.2.2", Port: 6380}, State: "online", LagBytes: 512, LagNs: 30_000_000, ClientID: 4},
			{Address: replicas.Address{Host: hostile, Port: 6380}, State: "send_bulk", LagBytes: 3 << 20, LagNs: 125e9, ClientID: 7},
		},
		Counts: replicas.Counts{FullSyncs: 2, PartialSyncs: 1, Handovers: 1, HandoverTimeouts: 1},
	}
}

func replicaStatus(link replicas.Link) replicas.Status {
	return replicas.Status{
		Role: replicas.Replica, Leader: replicas.Address{Host: "192.0.2.1", Port: 6380}, Link: link, Offset: 3 << 20, LagNs: 30_000_000,
		SyncBytes: 5 << 20, Counts: replicas.Counts{FullSyncsTaken: 3},
	}
}

func pageWith(st replicas.Status) *Page {
	s := testSource(nil)
	s.Replication = func() replicas.Status { return st }
	p := New(s)
	fill(p, 1)
	return p
}

// TestReplicationIsAbsent checks that a server alone, and one over a store on other machines, show nothing of
// replicas.
func TestReplicationIsAbsent(t *testing.T) {
	for _, p := range []*Page{New(testSource(nil)), pageWith(replicas.Status{History: "4f", MaxBacklog: 16 << 20, Priority: 100})} {
		lacksText(t, body(t, p, "lang=en"), "<dt>Role", "READONLY", "<dt>Repl", "replication-heading")
	}
}

func TestLeader(t *testing.T) {
	st := leaderStatus()
	p := pageWith(st)
	page := body(t, p, "lang=en")
	wantText(t, page, "<dt>Role</dt><dd>leader</dd>", "<dt>Replicas</dt><dd>2</dd>", "<dt>Backlog</dt><dd>2\u00a0MiB of 16\u00a0MiB</dd>",
		`<th scope="row">192.0.2.2:6380</th><td>follows</td><td>30`+"\u00a0ms</td><td>512\u00a0B</td>", "<td>full sync</td><td>2m5s</td><td>3\u00a0MiB</td>",
		"<dt>Full syncs given since the start</dt><dd>2</dd>", "<dt>Planned changes of leader</dt><dd>2, of which 1 failed</dd>")
	lacksText(t, page, "READONLY", "NOREPLICAS")
	noMarkup(t, page)
	wantText(t, body(t, p, "lang=zh"), "<dt>角色</dt><dd>主节点</dd>", "<td>全量同步</td>")

	st.MinReplicas, st.HandingOver = 2, true
	page = body(t, pageWith(st), "lang=en")
	wantText(t, page, announced(tooFewReplicas, "Too few replicas keep up. Calls that would change a key are refused with -NOREPLICAS.</p>"),
		"<p>1 of the 2 replicas that --min-replicas-to-write requires keep up. Repair", tileOf("replicas", critical, "Replicas", "1 / 2</span>"),
		"<dt>Planned changes of leader</dt><dd>under way</dd>")
	st.PeerLeads = true
	wantText(t, body(t, pageWith(st), "lang=en"), announced(peerLeads, "The other server of the pair leads, too."), "send REPLICAOF to the other one")
	st = replicas.Status{MinReplicas: 1}
	wantText(t, body(t, pageWith(st), "lang=zh"), "跟得上的副本有 0 个，--min-replicas-to-write 要求 1 个。")
}

func TestReplica(t *testing.T) {
	const notice = "<li>This server is a replica and answers only calls that change nothing. Others get -READONLY: send them to the leader, 192.0.2.1:6380.</li>"
	for _, tt := range []struct {
		link    replicas.Link
		en, zh  []string
		problem bool
	}{
		{link: replicas.LinkConnected, en: []string{`<dt>Replication lag</dt><dd><span class="value">30` + "\u00a0ms</span>", "<dt>Link to the leader</dt><dd>up</dd>"}, zh: []string{"<dt>与主节点的连接</dt><dd>正常</dd>"}},
		{
			link: replicas.LinkSync,
			en:   []string{`<dt>Link to the leader</dt><dd><span class="value">full sync</span>`, "<li>It is taking all states from the leader, 5\u00a0MiB so far."},
			zh:   []string{"已收到 5\u00a0MiB。"},
		},
		{link: replicas.LinkConnecting, en: []string{tileOf("link", warning, "Link to the leader", "connecting</span>")}, problem: true},
		{link: replicas.LinkConnect, en: []string{tileOf("link", warning, "Link to the leader", "down</span>")}, zh: []string{"与主节点的连接中断。"}, problem: true},
	} {
		st := replicaStatus(tt.link)
		st.LinkDownSinceNs, st.LinkError = testNowNs-5*int64(time.Second), errors.New("192.0.2.1:6380: <refused>")
		p := pageWith(st)
		page := body(t, p, "lang=en")
		wantText(t, page, append(tt.en, notice, "<dt>Role</dt><dd>replica of 192.0.2.1:6380</dd>", "<dt>Full syncs since the start</dt><dd>3</dd>")...)
		wantText(t, body(t, p, "lang=zh"), append(tt.zh, "<li>本服务器是副本", "<dt>角色</dt><dd>192.0.2.1:6380 的副本</dd>")...)
		alert := []string{
			announced(replicaLinkDown, "This replica has had no link to its leader since 2023-11-14 22:13:15 UTC. It answers from older states."),
			"<code>192.0.2.1:6380: &lt;refused&gt;</code>",
		}
		if tt.problem {
			wantText(t, page, alert...)
		} else {
			lacksText(t, page, alert...)
		}
	}
}

// TestNewReplica checks the page of a replica that knows nothing yet and was asked nothing.
func TestNewReplica(t *testing.T) {
	p := New(pageWith(replicas.Status{Role: replicas.Replica, LagNs: math.MaxInt64}).source)
	page := body(t, p, "lang=en")
	wantText(t, page, "<dd>replica of –</dd>", "<dt>Replication lag</dt><dd>–</dd>", "no link to its leader since 2023-11-14 22:13:20 UTC")
	lacksText(t, page, words.English().FirstCall)
}

// TestReplicationIsRenewed checks that a watched page shows the link at once, and the details after a few
// samples.
func TestReplicationIsRenewed(t *testing.T) {
	s, st := testSource(nil), replicaStatus(replicas.LinkConnected)
	s.Replication = func() replicas.Status { return st }
	p := New(s)
	fill(p, 1)
	b := newBrowser(p)
	b.update(t)
	st.Link, st.LinkDownSinceNs = replicas.LinkConnect, testNowNs
	if u := b.update(t); !strings.Contains(u.Parts["fault"], "no link to its leader") {
		t.Errorf("the fault is not shown at once: %q", u.Parts)
	}
	for i := range int(renewals) {
		p.addSample(10+i, history.Sample{})
		b.update(t)
	}
	if want := "<dd>down</dd>"; !strings.Contains(b.parts["replication"], want) {
		t.Errorf("after %d samples %q lacks %q", renewals, b.parts["replication"], want)
	}
}

// TestManyReplicas bounds the table.
func TestManyReplicas(t *testing.T) {
	var st replicas.Status
	for i := range 100 {
		st.Replicas = append(st.Replicas, replicas.ReplicaStatus{Address: replicas.Address{Host: fmt.Sprintf("replica-%d", i)}, ClientID: int64(i)})
	}
	page := body(t, pageWith(st), "lang=en")
	wantText(t, page, "<dd>100</dd>", "<td>waits for a full sync</td>")
	if n := strings.Count(page, `scope="row">replica-`); n != maxReplicaRows {
		t.Errorf("%d rows, want %d", n, maxReplicaRows)
	}
}
