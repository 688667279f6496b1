<?php
// SPDX-License-Identifier: Apache-2.0
// begin.php - WordPress for a program of the command line, as if its own site had been asked for.

if (PHP_SAPI !== 'cli') {
    exit;
}
define('ABSPATH', dirname(__DIR__) . '/');
$at = parse_url((string) getenv('LEASEHOLD_SITE_URL'));
$_SERVER = [
    'HTTP_HOST' => $at['host'] . (isset($at['port']) ? ':' . $at['port'] : ''),
    'SERVER_NAME' => $at['host'],
    'SERVER_PROTOCOL' => 'HTTP/1.1',
    'REQUEST_METHOD' => 'GET',
    'REQUEST_URI' => ($at['path'] ?? '') . '/',
    'REMOTE_ADDR' => '127.0.0.1',
] + $_SERVER;
