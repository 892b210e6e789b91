//go:build !linux && !darwin

package quota

import "errors"

// FreeSpace is not supported on this operating system.
func FreeSpace(string) (int64, error) { return 0, errors.ErrUnsupported }
