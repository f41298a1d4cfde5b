package main

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"cellserver/internal/base/yamlfile"
	"cellserver/internal/decide/limits"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
)

// checkFiles reads the files that settings name as a server would, and says which of them it could not use.
func checkFiles(o *options, log *slog.Logger) (wrong problems) {
	for _, check := range []func(*options, *slog.Logger) error{
		(*options).readPassword, checkCertFiles, checkWebFiles, checkLimitsFile, checkACLFile, checkStoreFiles,
	} {
		if err := check(o, log); err != nil {
			wrong = append(wrong, splitProblems(err)...)
		}
	}
	return wrong
}

func checkCertFiles(o *options, log *slog.Logger) error {
	if o.tlsCert == "" || o.tlsKey == "" {
		return nil // which another check says
	}
	_, err := openCerts(o, log)
	return err
}

func checkWebFiles(o *options, log *slog.Logger) error {
	if (o.metricsTLSCert == "") != (o.metricsTLSKey == "") {
		return nil // which another check says
	}
	_, err := newWeb(o, func() int64 { return time.Now().UnixNano() }, log)
	return err
}

func checkLimitsFile(o *options, log *slog.Logger) error {
	if o.limitsFile == "" {
		return nil
	}
	err := limits.New(limits.Config{File: o.limitsFile, Reading: o.reading(), Log: log}).Reload()
	if lines := (yamlfile.Problems)(nil); err != nil && !errors.As(err, &lines) {
		return fmt.Errorf("--limits-file: %w", err)
	}
	return err
}

func checkACLFile(o *options, _ *slog.Logger) error {
	if o.aclFile == "" {
		return nil
	}
	if _, err := acl.NewUsers(catalog.New().ForRules()).LoadFile(o.aclFile); err != nil {
		return fmt.Errorf("--aclfile: %w", err)
	}
	return nil
}

// checkStoreFiles reads the URL of --store, and its files. Nothing is connected to.
func checkStoreFiles(o *options, log *slog.Logger) error {
	if !o.isRemote() || o.remote.checkParts() != nil {
		return nil //nolint:nilerr // another check says it
	}
	return checkRemote(&o.remote, log)
}
