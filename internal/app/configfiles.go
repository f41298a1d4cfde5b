package app

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"cellserver/internal/app/settings"
	"cellserver/internal/app/storage"
	"cellserver/internal/base/certs"
	"cellserver/internal/base/yamlfile"
	"cellserver/internal/decide/namedlimit/limitsfile"
	"cellserver/internal/edge/door"
	"cellserver/internal/wire/catalog"
)

// checkFiles reads the files that settings name as a server would, and returns the mistakes in them.
func checkFiles(o *settings.Options, log *slog.Logger) (wrong settings.Problems) {
	for _, check := range []func(*settings.Options, *slog.Logger) error{
		(*settings.Options).ReadPassword, checkCertFiles, checkWebFiles, checkLimitsFile, checkUsers, checkStoreFiles, checkDoorFiles, checkReplicationFiles,
	} {
		if err := check(o, log); err != nil {
			wrong = append(wrong, settings.SplitProblems(err)...)
		}
	}
	return wrong
}

func checkCertFiles(o *settings.Options, log *slog.Logger) error {
	if o.TLSCert == "" || o.TLSKey == "" {
		return nil // reported by checkTLS
	}
	_, err := openCerts(o, log)
	return err
}

func checkWebFiles(o *settings.Options, log *slog.Logger) error {
	if (o.MetricsTLSCert == "") != (o.MetricsTLSKey == "") {
		return nil // reported by checkMetrics
	}
	_, err := newWebServer(o, func() int64 { return time.Now().UnixNano() }, log)
	return err
}

func checkLimitsFile(o *settings.Options, log *slog.Logger) error {
	if o.LimitsFile == "" {
		return nil
	}
	err := limitsfile.New(limitsfile.Config{File: o.LimitsFile, Reading: o.Reading(), Log: log}).Reload()
	if lines := (yamlfile.Problems)(nil); err != nil && !errors.As(err, &lines) {
		return fmt.Errorf("--limits-file: %w", err)
	}
	return err
}

// checkUsers reads the ACL file, and warns of what has no effect with its users.
func checkUsers(o *settings.Options, log *slog.Logger) error {
	a, tokens := newAccess(o, catalog.New()), door.Tokens{}
	if o.ACLFile != "" {
		if _, err := a.users.LoadFile(o.ACLFile); err != nil {
			return fmt.Errorf("--aclfile: %w", err)
		}
	}
	_ = readTokens(o.Doors.TokensFile, &tokens) // another check says it
	a.warnOfUsers(&tokens, log)
	return nil
}

// checkStoreFiles reads the URL of --store and its files; it does not connect.
func checkStoreFiles(o *settings.Options, log *slog.Logger) error {
	if !o.IsRemote() || o.Remote.CheckParts() != nil {
		return nil //nolint:nilerr // another check says it
	}
	return storage.CheckRemote(&o.Remote, log)
}

// checkReplicationFiles reads the files for logging in to another server.
func checkReplicationFiles(o *settings.Options, log *slog.Logger) error {
	_, err := replicationLogin(&o.Replication, log)
	return err
}

func checkDoorFiles(o *settings.Options, log *slog.Logger) error {
	if err := readTokens(o.Doors.TokensFile, &door.Tokens{}); err != nil {
		return err
	}
	if o.Doors.Envoy.Config == "" {
		return checkXDSFiles(o)
	}
	_, err := openRuleFiles(o, log)
	return err
}

// openCerts reads the TLS files; nil without TLS.
func openCerts(o *settings.Options, log *slog.Logger) (*certs.Keeper, error) {
	if !o.HasTLS() {
		return nil, nil
	}
	return certs.Open(certs.Files{Cert: o.TLSCert, Key: o.TLSKey, ClientCA: o.TLSClientCA, Clients: o.ClientAuth()}, time.Now, log)
}

// openRatelimitCerts reads the TLS files of the gRPC door alone; nil for none.
func openRatelimitCerts(o *settings.Options, log *slog.Logger) (*certs.Keeper, error) {
	r := &o.Doors.Envoy.Ratelimit
	if r.GRPCCert == "" {
		return nil, nil
	}
	files := certs.Files{
		Cert: r.GRPCCert, Key: r.GRPCKey, ClientCA: r.GRPCClientCA, ClientName: r.GRPCClientName, Clients: tls.NoClientCert,
		Variables: &certs.Variables{Cert: "GRPC_SERVER_TLS_CERT", Key: "GRPC_SERVER_TLS_KEY", ClientCA: "GRPC_CLIENT_TLS_CACERT"},
	}
	if r.GRPCClientCA != "" {
		files.Clients = tls.RequireAndVerifyClientCert
	}
	return certs.Open(files, time.Now, log)
}
