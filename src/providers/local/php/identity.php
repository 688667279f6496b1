<?php
// SPDX-License-Identifier: Apache-2.0
// identity.php - the OpenID provider of the tenants' pools: discovery, keys, authorize, token, userinfo below ISSUER/.
//
// One pool is one folder, written by pool.php: its key, its one client, its people. A code is a file that is taken away when it is used. Tokens of
// a pool name it as their issuer and are signed with its key, so they are good for no other.

const CODE_SECONDS = 60;
const TOKEN_SECONDS = 3600;
const FAILURES_MAX = 10;
const FAILURE_SECONDS = 900;

function answer(int $status, array $body): never
{
    http_response_code($status);
    header('Content-Type: application/json');
    header('Cache-Control: no-store');
    echo json_encode($body, JSON_UNESCAPED_SLASHES);
    exit;
}

function refuse(int $status, string $error, string $why): never
{
    if ($status === 401) {
        header('WWW-Authenticate: Bearer error="' . $error . '"');
    }
    answer($status, ['error' => $error, 'error_description' => $why]);
}

function text(array $from, string $name, int $max = 2000): string
{
    $value = $from[$name] ?? '';
    return is_string($value) && strlen($value) <= $max ? $value : '';
}

function b64(string $bytes): string
{
    return rtrim(strtr(base64_encode($bytes), '+/', '-_'), '=');
}

function key_id(array $pool): string
{
    return substr(hash('sha256', $pool['key']), 0, 16);
}

function token(array $pool, array $claims): string
{
    $head = ['alg' => 'RS256', 'typ' => 'JWT', 'kid' => key_id($pool)];
    $claims += ['iss' => $pool['issuer'], 'iat' => time(), 'exp' => time() + TOKEN_SECONDS];
    $signed = b64(json_encode($head)) . '.' . b64(json_encode($claims, JSON_UNESCAPED_SLASHES));
    openssl_sign($signed, $signature, $pool['key'], OPENSSL_ALGO_SHA256);
    return $signed . '.' . b64($signature);
}

/** The claims of an access token of this pool, or null. */
function read_token(array $pool, string $token): ?array
{
    $parts = explode('.', $token);
    $public = openssl_pkey_get_details(openssl_pkey_get_private($pool['key']))['key'];
    if (count($parts) !== 3) {
        return null;
    }
    $signature = base64_decode(strtr($parts[2], '-_', '+/'), true);
    if ($signature === false || openssl_verify("$parts[0].$parts[1]", $signature, $public, OPENSSL_ALGO_SHA256) !== 1) {
        return null;
    }
    $claims = json_decode((string) base64_decode(strtr($parts[1], '-_', '+/')), true);
    return is_array($claims) && ($claims['use'] ?? '') === 'access' && $claims['exp'] > time() ? $claims : null;
}

function person(string $folder, string $email): ?array
{
    $file = "$folder/people/" . hash('sha256', strtolower($email)) . '.json';
    return json_decode((string) @file_get_contents($file), true);
}

/**
 * Who this is, or null; after too many failures of one person nobody is, for a while. Failures are counted in a file, of those who are in the pool
 * only: anybody can make up addresses. A hash is computed for each answer, so that its time does not tell who is known.
 */
function sign_in(string $folder, string $email, string $password): ?array
{
    $note = "$folder/failures/" . hash('sha256', strtolower($email));
    $who = person($folder, $email);
    $failures = is_file($note) && filemtime($note) > time() - FAILURE_SECONDS ? (int) filesize($note) : 0;
    $is_right = password_verify($password, $who['hash'] ?? '$2y$10$usesomesillystringforeCr5wjdY3zDOQj2P3vNkqkZ6L9b1YQ1q2e');
    if ($who && $is_right && $failures < FAILURES_MAX) {
        @unlink($note);
        return $who;
    }
    $who && file_put_contents($note, 'x', $failures ? FILE_APPEND : 0);
    return null;
}

/** What is wrong with a new password; empty: nothing. */
function weakness(string $new, string $old): string
{
    foreach (['/^.{8,256}$/s', '/[A-Z]/', '/[a-z]/', '/[0-9]/', '/[^A-Za-z0-9]/'] as $rule) {
        if (!preg_match($rule, $new)) {
            return 'The new password is too weak: 8 characters, an upper and a lower case letter, a digit, one that is none of these.';
        }
    }
    return $new === $old ? 'The new password must be another than the old one.' : '';
}

/** False: he was removed or changed meanwhile. */
function set_password(string $folder, array $who, string $new): bool
{
    $file = "$folder/people/" . hash('sha256', strtolower($who['email'])) . '.json';
    $lock = fopen("$folder/lock", 'c');
    flock($lock, LOCK_EX);
    if (person($folder, $who['email']) != $who) {
        return false;
    }
    $draft = $file . '.' . bin2hex(random_bytes(6));
    $text = json_encode(['hash' => password_hash($new, PASSWORD_BCRYPT)] + array_diff_key($who, ['until' => 1]), JSON_UNESCAPED_SLASHES);
    return file_put_contents($draft, $text) === strlen($text) && rename($draft, $file);
}

/** Who was added, or got another password, chooses his own at the first sign-in, within a week. */
function choose_password(string $folder, array $pool, array $who): void
{
    $new = text($_POST, 'new', 256);
    if ($who['until'] < time()) {
        form($pool, 'This password was good for a week, and is no longer. Please ask for another.');
    }
    if ($new === '') {
        form($pool, '', 'Choose a password of your own.');
    }
    $why = weakness($new, text($_POST, 'password', 256));
    if ($why !== '') {
        form($pool, $why, 'Choose a password of your own.');
    }
    set_password($folder, $who, $new) || form($pool, 'E-mail or password is wrong.');
}

function form(array $pool, string $why, string $choose = ''): never
{
    $safe = fn($s) => htmlspecialchars($s, ENT_QUOTES | ENT_SUBSTITUTE);
    $email = $choose === '' ? '' : $safe(text($_POST, 'email', 254));
    $more = '<label>New password<input name="new" type="password" autocomplete="new-password" required></label>';
    http_response_code($why ? 401 : 200);
    header('Content-Type: text/html; charset=utf-8');
    header('Cache-Control: no-store');
    header("Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'");
    header('X-Frame-Options: DENY');
    header('Referrer-Policy: no-referrer');
    echo '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
        '<title>Sign in</title><style>body{font:16px sans-serif;max-width:22em;margin:4em auto;padding:0 1em}',
        'input,button{display:block;width:100%;box-sizing:border-box;font:inherit;padding:.5em;margin:.3em 0 1em}</style>',
        '<h1>', $safe($pool['title']), '</h1>', $why ? '<p role="alert">' . $safe($why) . '</p>' : '',
        $choose === '' ? '' : '<p>' . $safe($choose) . '</p>',
        '<form method="post"><label>E-mail<input name="email" type="email" value="', $email, '" autocomplete="username" required autofocus></label>',
        '<label>Password<input name="password" type="password" autocomplete="current-password" required></label>', $choose === '' ? '' : $more,
        '<button>Sign in</button></form></html>';
    exit;
}

function authorize(string $folder, array $pool): never
{
    if (!hash_equals($pool['client'], text($_GET, 'client_id')) || text($_GET, 'redirect_uri') !== $pool['redirect']) {
        refuse(400, 'invalid_request', 'unknown client_id, or a redirect_uri that is not the client\'s');
    }
    $back = fn(array $with) => header('Location: ' . $pool['redirect'] . (str_contains($pool['redirect'], '?') ? '&' : '?')
        . http_build_query($with + ['state' => text($_GET, 'state')]), true, 303);
    $challenge = text($_GET, 'code_challenge', 128);
    if (text($_GET, 'response_type') !== 'code' || !in_array('openid', explode(' ', text($_GET, 'scope')), true)
        || ($challenge !== '' && text($_GET, 'code_challenge_method') !== 'S256')) {
        $back(['error' => 'invalid_request']);
        exit;
    }
    if ($_SERVER['REQUEST_METHOD'] !== 'POST') {
        form($pool, '');
    }
    $who = sign_in($folder, text($_POST, 'email', 254), text($_POST, 'password', 256));
    if (!$who) {
        form($pool, 'E-mail or password is wrong.');
    }
    isset($who['until']) && choose_password($folder, $pool, $who);
    foreach (glob("$folder/codes/*") as $old) {
        filemtime($old) < time() - 2 * CODE_SECONDS && @unlink($old);
    }
    $code = b64(random_bytes(32));
    $grant = ['email' => $who['email'], 'nonce' => text($_GET, 'nonce', 256), 'challenge' => $challenge, 'until' => time() + CODE_SECONDS];
    file_put_contents("$folder/codes/" . hash('sha256', $code), json_encode($grant));
    $back(['code' => $code]);
    exit;
}

/** What a code stands for; once. */
function take_code(string $folder, string $code): ?array
{
    $file = "$folder/codes/" . hash('sha256', $code);
    $mine = $file . '.' . bin2hex(random_bytes(6));
    if (!@rename($file, $mine)) {
        return null;
    }
    $grant = json_decode(file_get_contents($mine), true);
    unlink($mine);
    return is_array($grant) && $grant['until'] >= time() ? $grant : null;
}

function exchange(string $folder, array $pool): never
{
    $client = $_SERVER['PHP_AUTH_USER'] ?? text($_POST, 'client_id');
    $secret = $_SERVER['PHP_AUTH_PW'] ?? text($_POST, 'client_secret');
    if (!hash_equals($pool['client'], $client) || !hash_equals($pool['client_hash'], hash('sha256', $secret))) {
        refuse(401, 'invalid_client', 'this is not the client\'s secret');
    }
    $grant = text($_POST, 'grant_type') === 'authorization_code' && text($_POST, 'redirect_uri') === $pool['redirect']
        ? take_code($folder, text($_POST, 'code', 100)) : null;
    $verifier = b64(hash('sha256', text($_POST, 'code_verifier', 128), true));
    $who = $grant && ($grant['challenge'] === '' || hash_equals($grant['challenge'], $verifier)) ? person($folder, $grant['email']) : null;
    if (!$who) {
        refuse(400, 'invalid_grant', 'the code is unknown, used or too old');
    }
    $claims = ['sub' => $who['sub'], 'aud' => $pool['client']];
    $about = ['email' => $who['email'], 'email_verified' => true, 'name' => $who['name']];
    $nonce = $grant['nonce'] !== '' ? ['nonce' => $grant['nonce']] : [];
    answer(200, [
        'access_token' => token($pool, $claims + ['use' => 'access', 'email' => $who['email']]),
        'token_type' => 'Bearer',
        'expires_in' => TOKEN_SECONDS,
        'id_token' => token($pool, $claims + $about + $nonce),
    ]);
}

function userinfo(string $folder, array $pool): never
{
    $claims = read_token($pool, preg_match('/^Bearer (\S{1,4000})$/', $_SERVER['HTTP_AUTHORIZATION'] ?? '', $m) ? $m[1] : '');
    $who = $claims ? person($folder, $claims['email']) : null;
    if (!$who) {
        refuse(401, 'invalid_token', 'this is no access token of this pool, or its person is gone');
    }
    answer(200, ['sub' => $who['sub'], 'email' => $who['email'], 'email_verified' => true, 'name' => $who['name']]);
}

function discovery(array $pool): never
{
    $at = $pool['issuer'];
    answer(200, [
        'issuer' => $at,
        'authorization_endpoint' => "$at/authorize",
        'token_endpoint' => "$at/token",
        'userinfo_endpoint' => "$at/userinfo",
        'jwks_uri' => "$at/keys",
        'response_types_supported' => ['code'],
        'grant_types_supported' => ['authorization_code'],
        'subject_types_supported' => ['public'],
        'id_token_signing_alg_values_supported' => ['RS256'],
        'scopes_supported' => ['openid', 'email', 'profile'],
        'token_endpoint_auth_methods_supported' => ['client_secret_basic', 'client_secret_post'],
        'code_challenge_methods_supported' => ['S256'],
        'claims_supported' => ['sub', 'iss', 'aud', 'exp', 'iat', 'nonce', 'email', 'email_verified', 'name'],
    ]);
}

function keys(array $pool): never
{
    $rsa = openssl_pkey_get_details(openssl_pkey_get_private($pool['key']))['rsa'];
    answer(200, ['keys' => [['kty' => 'RSA', 'use' => 'sig', 'alg' => 'RS256', 'kid' => key_id($pool), 'n' => b64($rsa['n']), 'e' => b64($rsa['e'])]]]);
}

umask(0077);
if (!preg_match('#^/identity/([a-z0-9][a-z0-9-]{2,62})/([a-z./-]{1,64})$#', strtok($_SERVER['REQUEST_URI'], '?'), $part)) {
    refuse(404, 'not_found', 'there is no such page');
}
$folder = $_SERVER['LEASEHOLD_POOLS'] . '/' . $part[1];
if (!is_file("$folder/pool.json")) {
    refuse(404, 'not_found', 'this tenant has no identity pool');
}
$pool = json_decode(file_get_contents("$folder/pool.json"), true);
switch ($_SERVER['REQUEST_METHOD'] . ' ' . $part[2]) {
    case 'GET .well-known/openid-configuration': discovery($pool);
    case 'GET keys': keys($pool);
    case 'GET authorize':
    case 'POST authorize': authorize($folder, $pool);
    case 'POST token': exchange($folder, $pool);
    case 'GET userinfo':
    case 'POST userinfo': userinfo($folder, $pool);
}
refuse(404, 'not_found', 'there is no such page');
