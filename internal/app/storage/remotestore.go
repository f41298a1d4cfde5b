package storage

import (
	"errors"
	"fmt"
	"log/slog"

	"cellserver/internal/app/settings"
	"cellserver/internal/app/usage"
	"cellserver/internal/keep/remote"
	"cellserver/internal/keep/remote/servers"
	"cellserver/internal/store"
)

// Remote is a store on other machines. A nil one is always ready.
type Remote struct {
	*remote.Store
	Pool   *servers.Pool
	Health *servers.Checker
}

// poolConfig reads the password files and returns the configuration of --store's servers.
func poolConfig(r *settings.StoreOptions, log *slog.Logger) (servers.Config, error) {
	password, err := settings.ReadSecret("--store-password-file", r.PasswordFile, "the password", log)
	if err != nil {
		return servers.Config{}, err
	}
	sentinelPassword, err := settings.ReadSecret("--store-sentinel-password-file", r.SentinelPasswordFile, "the password", log)
	if err != nil {
		return servers.Config{}, err
	}
	return servers.Config{
		URL: r.URL, Password: password, SentinelUser: r.SentinelUser, SentinelPassword: sentinelPassword,
		CAFile: r.TLSCA, CertFile: r.TLSCert, KeyFile: r.TLSKey, ServerName: r.TLSServerName, Timeout: r.Timeout, Log: log,
	}, nil
}

// CheckRemote checks --store and its files without connecting.
func CheckRemote(r *settings.StoreOptions, log *slog.Logger) error {
	config, err := poolConfig(r, log)
	if err != nil {
		return err
	}
	if err := servers.Check(config); err != nil {
		return usage.Errorf("--store: %w", err)
	}
	return nil
}

// openRemote opens --store without waiting for its servers.
func (s *Storage) openRemote() (*Remote, error) {
	r := &s.options.Remote
	of, err := poolConfig(r, s.log)
	if err != nil {
		return nil, err
	}
	pool, err := servers.Open(of)
	if err != nil {
		return nil, usage.Errorf("--store: %w", err)
	}
	config := remote.Config{
		Pool: pool, KeyPrefix: r.KeyPrefix, Timeout: r.Timeout, Wait: r.Wait, OnError: r.Policy, LocalShare: r.LocalShare,
		Now: s.clock.Now,
	}
	if s.Tables != nil {
		config.Local = s.Tables
	}
	opened, err := remote.Open(config)
	if err != nil {
		_ = pool.Close()
		return nil, err
	}
	w := servers.NewChecker(servers.CheckerConfig{Store: pool.String(), Policy: r.Policy, Pool: pool, Stats: opened.Stats, Size: opened.Size, Now: s.clock.Now, Log: s.log})
	return &Remote{opened, pool, w}, nil
}

func (s *Remote) close() {
	if s != nil {
		s.Close()
		_ = s.Pool.Close()
	}
}

var (
	errStoreNotAsked = errors.New("the store was not reached yet")
	ErrStoreAway     = errors.New("the store does not answer; the log says why")
)

// ready is a part of /readyz: if no server answers and calls get errors, clients should go elsewhere. If some
// answer, leaving is worse: all cellservers would, and the answering servers' keys had no limiter either. The
// cause may contain hosts and is in the log.
func (s *Remote) ready() error {
	if s == nil {
		return nil
	}
	switch st := s.Health.Health(); {
	case st.Policy != store.FallbackError:
	case !st.Asked:
		return errStoreNotAsked
	case st.Away():
		return ErrStoreAway
	}
	return nil
}

// degraded returns how the store is degraded, or "".
func (s *Remote) degraded() string {
	if s == nil {
		return ""
	}
	st := s.Health.Health()
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
