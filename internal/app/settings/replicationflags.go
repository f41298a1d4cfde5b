package settings

import (
	"errors"
	"fmt"
	"math"
	"net"
	"time"

	"github.com/spf13/pflag"

	"cellserver/internal/base/flagvalue"
	"cellserver/internal/keep/replication"
	"cellserver/internal/store/replicas"
)

const defaultMaxLag = 10 * time.Second

// ReplicationOptions are the flags about a second server.
type ReplicationOptions struct {
	ReplicaOf, Peer string
	PeerWait        time.Duration

	User, PasswordFile     string
	TLS                    bool
	TLSCA, TLSCert, TLSKey string

	Backlog      int
	AnnounceIP   string
	AnnouncePort int
	Priority     int
	ReadyLag     time.Duration // --max-replica-lag
	MinReplicas  int
	MaxLag       time.Duration
}

func (r *ReplicationOptions) define(fs *pflag.FlagSet) {
	const example = "10.0.0.1:6380"
	flagvalue.AddressVar(fs, &r.ReplicaOf, "replica-of", "", example, "`host:port` of the server to follow, of which this one is a replica (default none)")
	flagvalue.AddressVar(fs, &r.Peer, "peer", "", example, "`host:port` of the other server of a pair: at a start, if it leads it is followed, and without own states its states are taken (default none)")
	flagvalue.DurationVar(fs, &r.PeerWait, "peer-wait", 15*time.Second, 0, time.Hour, "longest `time` that a start waits for a --peer that does not answer; with states of its own, 5 s at most")
	fs.StringVar(&r.User, "repl-user", "", "`user` as which to log in to the leader and the peer (default the default user)")
	fs.StringVar(&r.PasswordFile, "repl-password-file", "", "`file` with that user's password")
	flagvalue.BoolVar(fs, &r.TLS, "repl-tls", "connect to them by TLS")
	fs.StringVar(&r.TLSCA, "repl-tls-ca", "", "PEM `file` with the authorities that issue their certificates (default the system's)")
	fs.StringVar(&r.TLSCert, "repl-tls-cert", "", "PEM `file` with our certificate, if they require one")
	fs.StringVar(&r.TLSKey, "repl-tls-key", "", "PEM `file` with that certificate's private key")
	flagvalue.NumberVar(fs, &r.Backlog, "repl-backlog", 16<<20, 64<<10, 1<<30, "`bytes` of the newest changes that are kept for replicas that were away for a short time")
	flagvalue.FuncVar(fs, flagvalue.Func{
		Kind: "host", Takes: "an IP address or a name, such as 10.0.0.1", Get: func() string { return r.AnnounceIP },
		Set: func(text string) bool {
			r.AnnounceIP = text
			return text == "" || replicas.CheckHost(text) == nil
		},
	}, "replica-announce-ip", "`host` of this server for Sentinel and clients (default the address of its connection)")
	flagvalue.NumberVar(fs, &r.AnnouncePort, "replica-announce-port", 0, 0, math.MaxUint16, "`port` of this server for them; 0 for that of --addr")
	flagvalue.NumberVar(fs, &r.Priority, "replica-priority", 100, 0, math.MaxInt32, "`number` by which Sentinel chooses among replicas, the lowest first; 0 for never")
	flagvalue.DurationVar(fs, &r.ReadyLag, "max-replica-lag", 0, 0, math.MaxInt64, "`time` behind its leader from which a replica fails /readyz; 0 for no limit")
	flagvalue.NumberVar(fs, &r.MinReplicas, "min-replicas-to-write", 0, 0, 1000, "`number` of replicas without which changes are refused; 0 for none")
	flagvalue.UnitDurationVar(fs, &r.MaxLag, "min-replicas-max-lag", defaultMaxLag, 200*time.Millisecond, math.MaxInt64, "`time` since a replica's last acknowledgement up to which it counts for that")
}

// Beginning returns the role at a start. The options are valid.
func (r *ReplicationOptions) Beginning() (b replication.Beginning) {
	b.ReplicaOf, _ = replicas.ParseAddress(r.ReplicaOf)
	b.Peer, _ = replicas.ParseAddress(r.Peer)
	b.PeerWait = r.PeerWait
	return b
}

// Settings returns those that can change at run time.
func (r *ReplicationOptions) Settings() replication.Settings {
	return replication.Settings{
		Priority: r.Priority, MinReplicas: r.MinReplicas, MaxLag: r.MaxLag, Backlog: int64(r.Backlog),
	}
}

// Announce returns where others reach this server, which listens at an address or nowhere.
func (r *ReplicationOptions) Announce(listener net.Addr) replicas.Address {
	a := replicas.Address{Host: r.AnnounceIP, Port: r.AnnouncePort}
	if tcp, ok := listener.(*net.TCPAddr); ok && a.Port == 0 {
		a.Port = tcp.Port
	}
	return a
}

func (o *Options) checkReplication() error {
	r := &o.Replication
	if o.IsRemote() {
		return o.refuse(new(ReplicationOptions).define, "cannot be used with --store, whose servers have their own replicas")
	}
	for name, text := range map[string]string{"replica-of": r.ReplicaOf, "peer": r.Peer} {
		if text == "" {
			continue
		}
		if _, err := replicas.ParseAddress(text); err != nil {
			return fmt.Errorf("--%s %w, got %s", name, err, flagvalue.Quote(text))
		}
	}
	switch {
	case r.User != "" && r.PasswordFile == "":
		return errors.New("--repl-user requires --repl-password-file: nobody logs in without a password")
	case (r.TLSCert == "") != (r.TLSKey == ""):
		return errors.New("--repl-tls-cert and --repl-tls-key require each other; set both")
	case r.TLSCA+r.TLSCert != "" && !r.TLS:
		return errors.New("--repl-tls-ca, --repl-tls-cert and --repl-tls-key require --repl-tls")
	}
	return nil
}
