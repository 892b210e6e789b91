package blob

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/s3utils"
)

// s3Address is the parsed URL of a bucket.
type s3Address struct {
	bucket   string
	region   string
	endpoint *url.URL
}

// parseS3 parses the URL s3://bucket?endpoint=URL&region=name. Its errors
// never repeat a value, because a value in the wrong field may be a password.
func parseS3(u *url.URL) (s3Address, error) {
	if u.User != nil {
		return s3Address{}, errors.New("the S3 address must not contain credentials; set the access key and the secret key instead")
	}
	if u.Host == "" || u.Port() != "" || strings.Trim(u.Path, "/") != "" || u.Fragment != "" {
		return s3Address{}, errors.New("the S3 address must have the form s3://bucket?endpoint=https://host:port&region=name")
	}
	if err := s3utils.CheckValidBucketNameStrict(u.Host); err != nil {
		return s3Address{}, fmt.Errorf("invalid S3 address: %w", err)
	}

	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return s3Address{}, errors.New("the query of the S3 address is malformed")
	}

	for name, values := range query {
		if name != "endpoint" && name != "region" {
			return s3Address{}, fmt.Errorf("the S3 address has the unknown parameter %q; credentials are separate settings", name)
		}
		if len(values) != 1 {
			return s3Address{}, fmt.Errorf("the S3 address has the parameter %q twice", name)
		}
	}

	endpoint, err := url.Parse(query.Get("endpoint"))
	if err != nil || endpoint.Host == "" || endpoint.Scheme != "http" && endpoint.Scheme != "https" {
		return s3Address{}, errors.New("the S3 address requires the parameter endpoint=https://host:port (or http://)")
	}
	if endpoint.User != nil {
		return s3Address{}, errors.New("the S3 endpoint must not contain credentials; set the access key and the secret key instead")
	}
	if strings.Trim(endpoint.Path, "/") != "" || endpoint.RawQuery != "" || endpoint.Fragment != "" {
		return s3Address{}, errors.New("the S3 endpoint must be a scheme and a host, without path, query or fragment")
	}

	a := s3Address{bucket: u.Host, region: query.Get("region"), endpoint: endpoint}
	if a.region == "" {
		a.region = "us-east-1"
	}
	return a, nil
}

// newTransport returns a transport that connects only to the endpoint, without
// a proxy.
func (a s3Address) newTransport() *http.Transport {
	port := a.endpoint.Port()
	switch {
	case port != "":
	case a.endpoint.Scheme == "https":
		port = "443"
	default:
		port = "80"
	}

	only := net.JoinHostPort(a.endpoint.Hostname(), port)
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if !strings.EqualFold(address, only) {
				return nil, fmt.Errorf("refusing to connect to %s: only the configured endpoint %s is allowed", address, only)
			}
			return dialer.DialContext(ctx, network, address)
		},
		TLSHandshakeTimeout:   10 * time.Second,
		ResponseHeaderTimeout: time.Minute,
		ExpectContinueTimeout: time.Second,
		IdleConnTimeout:       time.Minute,
		MaxIdleConnsPerHost:   64,
		DisableCompression:    true, // so that the stored bytes are received unchanged
	}
}
