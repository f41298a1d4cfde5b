package main

import (
	"errors"
	"fmt"
	"log/slog"

	"cellserver/internal/keep/remote"
	"cellserver/internal/keep/remote/ahead"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/keep/remote/watch"
	"cellserver/internal/store"
)

// remoteStore is a store on other machines. A nil one is there at all times.
type remoteStore struct {
	*remote.Store
	pool  *servers.Pool
	watch *watch.Watch
}

// poolConfig reads the password files, and returns which servers --store names.
func (r *storeOptions) poolConfig(log *slog.Logger) (servers.Config, error) {
	password, err := readSecret("--store-password-file", r.passwordFile, "the password", log)
	if err != nil {
		return servers.Config{}, err
	}
	sentinelPassword, err := readSecret("--store-sentinel-password-file", r.sentinelPasswordFile, "the password", log)
	if err != nil {
		return servers.Config{}, err
	}
	return servers.Config{
		URL: r.url, Password: password, SentinelUser: r.sentinelUser, SentinelPassword: sentinelPassword,
		CAFile: r.tlsCA, CertFile: r.tlsCert, KeyFile: r.tlsKey, ServerName: r.tlsServerName, Timeout: r.timeout, Log: log,
	}, nil
}

// storeMistake is an error of package servers about --store.
func storeMistake(err error) error {
	if err == nil {
		return nil
	}
	return usageError{fmt.Errorf("--store: %w", err)}
}

// check says what is wrong with --store and its files. It opens no connection.
func (r *storeOptions) check(log *slog.Logger) error {
	config, err := r.poolConfig(log)
	if err != nil {
		return err
	}
	return storeMistake(servers.Check(config))
}

// openPool returns the servers of --store, and does not wait for them.
func (r *storeOptions) openPool(log *slog.Logger) (*servers.Pool, error) {
	config, err := r.poolConfig(log)
	if err != nil {
		return nil, err
	}
	pool, err := servers.Open(config)
	return pool, storeMistake(err)
}

// openRemote opens --store. Whether its servers answer it does not wait for.
func (a *app) openRemote() (*remoteStore, error) {
	r := &a.options.remote
	pool, err := r.openPool(a.log)
	if err != nil {
		return nil, err
	}
	config := remote.Config{
		Pool: pool, KeyPrefix: r.keyPrefix, Timeout: r.timeout, Wait: r.wait, OnError: r.policy, LocalShare: r.localShare,
		Prefilter: r.prefilter, Now: a.now,
		Lease: ahead.Config{Enabled: r.lease, MaxUnits: int64(r.leaseMaxUnits), MaxTime: r.leaseTime, StartAbove: int64(r.leaseAbove)},
	}
	if a.tables != nil {
		config.Local = a.tables
	}
	s, err := remote.Open(config)
	if err != nil {
		_ = pool.Close()
		return nil, err
	}
	w := watch.New(watch.Config{Store: pool.String(), Policy: r.policy, Pool: pool, Stats: s.Stats, Size: s.Size, Now: a.now, Log: a.log})
	return &remoteStore{s, pool, w}, nil
}

func (s *remoteStore) close() {
	if s != nil {
		s.Close()
		_ = s.pool.Close()
	}
}

var (
	errStoreNotAsked = errors.New("the store was not reached yet")
	errStoreAway     = errors.New("the store does not answer; the log says why")
)

// ready is a part of /readyz: where calls get errors because no server of the store answers, clients should go elsewhere. If
// some answer, leaving is worse: all cellservers would, and the keys of those servers had no limiter, too. The cause may contain
// names of hosts, and is left to the log.
func (s *remoteStore) ready() error {
	if s == nil {
		return nil
	}
	switch st := s.watch.Health(); {
	case st.Policy != store.FallbackError:
	case !st.Asked:
		return errStoreNotAsked
	case st.Away():
		return errStoreAway
	}
	return nil
}

// degraded says in what way the store does not do all that it should; "" for in none.
func (s *remoteStore) degraded() string {
	if s == nil {
		return ""
	}
	st := s.watch.Health()
	what := "the store does not answer"
	switch {
	case st.Asked && st.Fault == nil:
		return ""
	case !st.Asked:
		what = "the store was not reached yet"
	case st.Up > 0:
		what = fmt.Sprintf("%d of %d servers of the store do not answer", st.Masters-st.Up, st.Masters)
	}
	return what + ", and --on-store-error=" + st.Policy.String() + " decides"
}
