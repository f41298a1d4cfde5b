package main

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"cellserver/internal/base/yamlfile"
	"cellserver/internal/decide/limits/limitsfile"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/catalog"
)

// checkFiles reads the files that settings name as a server would, and says which of them it could not use.
func (o *options) checkFiles(log *slog.Logger) (wrong problems) {
	for _, check := range []func(*slog.Logger) error{
		o.readPassword, o.checkCertFiles, o.checkWebFiles, o.checkLimitsFile, o.checkACLFile, o.checkStoreFiles,
	} {
		if err := check(log); err != nil {
			wrong = append(wrong, splitProblems(err)...)
		}
	}
	return wrong
}

func (o *options) checkCertFiles(log *slog.Logger) error {
	if o.tlsCert == "" || o.tlsKey == "" {
		return nil // which another check says
	}
	_, err := o.openCerts(log)
	return err
}

func (o *options) checkWebFiles(log *slog.Logger) error {
	if (o.metricsTLSCert == "") != (o.metricsTLSKey == "") {
		return nil // which another check says
	}
	_, err := o.newWeb(func() int64 { return time.Now().UnixNano() }, log)
	return err
}

func (o *options) checkLimitsFile(log *slog.Logger) error {
	if o.limitsFile == "" {
		return nil
	}
	err := limitsfile.New(limitsfile.Config{File: o.limitsFile, Reading: o.reading(), Log: log}).Reload()
	if lines := (yamlfile.Problems)(nil); err != nil && !errors.As(err, &lines) {
		return fmt.Errorf("--limits-file: %w", err)
	}
	return err
}

func (o *options) checkACLFile(*slog.Logger) error {
	if o.aclFile == "" {
		return nil
	}
	if _, err := acl.NewUsers(catalog.New().ForRules()).LoadFile(o.aclFile); err != nil {
		return fmt.Errorf("--aclfile: %w", err)
	}
	return nil
}

// checkStoreFiles reads the URL of --store, and its files. Nothing is connected to.
func (o *options) checkStoreFiles(log *slog.Logger) error {
	if !o.isRemote() || o.remote.checkParts() != nil {
		return nil //nolint:nilerr // another check says it
	}
	return o.remote.check(log)
}
