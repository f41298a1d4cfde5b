//go:build !unix

package main

import "os"

func lock(*os.File) error { return nil }
