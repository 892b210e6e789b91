package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// sumsName is the file with the digests of all packages, in the format of
// sha256sum.
const sumsName = "SHA256SUMS"

// signaturePurpose is the namespace of the signature: ssh-keygen refuses a
// signature that was made for another purpose.
const signaturePurpose = "file"

// writeSums writes the digests of all files in a folder to SHA256SUMS.
func writeSums(folder string) error {
	entries, err := os.ReadDir(folder) // sorted by name
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, e := range entries {
		sum, err := fileDigest(filepath.Join(folder, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%s  %s\n", sum, e.Name())
	}
	return os.WriteFile(filepath.Join(folder, sumsName), []byte(text.String()), 0o644) //nolint:gosec // for everybody
}

// fileDigest returns the SHA-256 of a file in hexadecimal.
func fileDigest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", sum.Sum(nil)), nil
}

// compareFolders returns an error that names the files in which two builds
// differ.
func compareFolders(first, second string) error {
	one, err := os.ReadFile(filepath.Join(first, sumsName))
	if err != nil {
		return err
	}
	two, err := os.ReadFile(filepath.Join(second, sumsName))
	if err != nil {
		return err
	}
	inSecond := map[string]bool{}
	for line := range strings.Lines(string(two)) {
		inSecond[line] = true
	}
	var different []string
	for line := range strings.Lines(string(one)) {
		if !inSecond[line] {
			_, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
			different = append(different, name)
		}
	}
	if len(different) > 0 || len(one) != len(two) {
		return fmt.Errorf("two builds of one commit differ: %s", strings.Join(different, ", "))
	}
	return nil
}

// signFile signs a file with an SSH key. ssh-keygen writes the signature next to
// it, with the suffix .sig. It is used instead of a library because it knows
// keys with a passphrase, in an agent, and on a security token.
func signFile(ctx context.Context, path, key string) error {
	c := exec.CommandContext(ctx, "ssh-keygen", "-q", "-Y", "sign", "-f", key, "-n", signaturePurpose, path)
	c.Stdin = os.Stdin // for the passphrase
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("sign %s: %w: %s", path, err, strings.TrimSpace(string(out)))
	}
	return nil
}
