<?php
/**
 * Plugin Name: Sign-in with the organisation's account
 * Description: Offers the tenant's identity pool (OpenID Connect, code flow) on the sign-in page.
 */
// SPDX-License-Identifier: Apache-2.0
// signin.php - becomes wp-content/mu-plugins/leasehold-signin.php. Its settings are the option leasehold_signin, written by configure.php: issuer,
// client, secret. A person of the pool becomes the WordPress user with that address; one who is new gets the site's default role, and has no other way in
// than the pool: who was removed from that gets in no more.

defined('ABSPATH') || exit;

const LEASEHOLD_COOKIE = 'leasehold_signin';
const LEASEHOLD_POOL = 'leasehold_pool'; // of a user who came from it

function leasehold_signin_settings(): ?array
{
    $settings = get_option('leasehold_signin');
    return is_array($settings) && !empty($settings['issuer']) ? $settings : null;
}

function leasehold_signin_callback(): string
{
    return add_query_arg('leasehold', 'callback', site_url('wp-login.php'));
}

function leasehold_signin_fail(string $why): never
{
    wp_die(esc_html($why), 'Sign-in', ['response' => 403, 'link_url' => wp_login_url(), 'link_text' => 'Back to the sign-in page']);
}

function leasehold_signin_begin(array $settings): never
{
    $state = wp_generate_password(40, false);
    $verifier = wp_generate_password(64, false);
    $path = ['path' => COOKIEPATH ?: '/', 'httponly' => true, 'samesite' => 'Lax', 'secure' => is_ssl()];
    setcookie(LEASEHOLD_COOKIE, "$state.$verifier", $path + ['expires' => time() + 600]);
    $challenge = rtrim(strtr(base64_encode(hash('sha256', $verifier, true)), '+/', '-_'), '=');
    $query = ['response_type' => 'code', 'client_id' => $settings['client'], 'redirect_uri' => leasehold_signin_callback(), 'scope' => 'openid email profile',
        'state' => $state, 'nonce' => wp_hash($state), 'code_challenge' => $challenge, 'code_challenge_method' => 'S256'];
    wp_redirect($settings['issuer'] . '/authorize?' . http_build_query($query));
    exit;
}

function leasehold_signin_ask(string $url, array $with = []): array
{
    $reply = $with ? wp_remote_post($url, ['timeout' => 15, 'redirection' => 0] + $with) : wp_remote_get($url, ['timeout' => 15, 'redirection' => 0]);
    $body = is_wp_error($reply) || wp_remote_retrieve_response_code($reply) !== 200 ? null : json_decode(wp_remote_retrieve_body($reply), true);
    if (!is_array($body)) {
        leasehold_signin_fail('The organisation\'s sign-in did not answer as it should. Please try again.');
    }
    return $body;
}

function leasehold_signin_bytes(string $text): string
{
    return (string) base64_decode(strtr($text, '-_', '+/'));
}

/** A public key as PEM, of its numbers. */
function leasehold_signin_key(array $jwk): string
{
    $length = fn($n) => $n < 128 ? chr($n) : ($n < 256 ? "\x81" . chr($n) : "\x82" . pack('n', $n));
    $wrap = fn($tag, $bytes) => $tag . $length(strlen($bytes)) . $bytes;
    $number = fn($bytes) => $wrap("\x02", ord($bytes[0]) > 127 ? "\0$bytes" : $bytes);
    $rsa = $wrap("\x30", $number(leasehold_signin_bytes($jwk['n'])) . $number(leasehold_signin_bytes($jwk['e'])));
    $kind = "\x30\x0d\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01\x05\x00";
    return "-----BEGIN PUBLIC KEY-----\n" . chunk_split(base64_encode($wrap("\x30", $kind . $wrap("\x03", "\0$rsa"))), 64) . "-----END PUBLIC KEY-----\n";
}

/** The claims of an identity token that is good. */
function leasehold_signin_claims(array $settings, string $token, string $nonce): array
{
    $parts = explode('.', $token);
    $head = count($parts) === 3 ? json_decode(leasehold_signin_bytes($parts[0]), true) : null;
    $claims = count($parts) === 3 ? json_decode(leasehold_signin_bytes($parts[1]), true) : null;
    foreach (leasehold_signin_ask($settings['issuer'] . '/keys')['keys'] ?? [] as $jwk) {
        $is_meant = ($head['alg'] ?? '') === 'RS256' && ($head['kid'] ?? '') === ($jwk['kid'] ?? null);
        if ($is_meant && openssl_verify("$parts[0].$parts[1]", leasehold_signin_bytes($parts[2]), leasehold_signin_key($jwk), OPENSSL_ALGO_SHA256) === 1
            && $claims['iss'] === $settings['issuer'] && $claims['aud'] === $settings['client'] && $claims['exp'] > time()
            && hash_equals($nonce, $claims['nonce'] ?? '') && ($claims['email_verified'] ?? false) === true) {
            return $claims;
        }
    }
    leasehold_signin_fail('The organisation\'s sign-in cannot be trusted.');
}

function leasehold_signin_user(array $claims): WP_User
{
    $user = get_user_by('email', $claims['email']);
    if ($user) {
        return $user;
    }
    $name = sanitize_user(strtok($claims['email'], '@') . '-' . substr($claims['sub'], 0, 6), true);
    $id = wp_insert_user(['user_login' => $name, 'user_email' => $claims['email'], 'display_name' => $claims['name'] ?: $name,
        'user_pass' => wp_generate_password(48), 'role' => get_option('default_role')]);
    if (is_wp_error($id)) {
        leasehold_signin_fail('There is no room for this person on the site.');
    }
    update_user_meta($id, LEASEHOLD_POOL, '1');
    return get_user_by('id', $id);
}

function leasehold_signin_is_of_pool($user): bool
{
    return $user instanceof WP_User && get_user_meta($user->ID, LEASEHOLD_POOL, true) === '1';
}

function leasehold_signin_end(array $settings): never
{
    [$state, $verifier] = explode('.', (string) ($_COOKIE[LEASEHOLD_COOKIE] ?? '')) + ['', ''];
    setcookie(LEASEHOLD_COOKIE, '', ['path' => COOKIEPATH ?: '/', 'expires' => 1]);
    if ($state === '' || !hash_equals($state, (string) ($_GET['state'] ?? '')) || empty($_GET['code'])) {
        leasehold_signin_fail('This sign-in was not begun here, or too long ago. Please try again.');
    }
    $tokens = leasehold_signin_ask($settings['issuer'] . '/token', ['body' => ['grant_type' => 'authorization_code', 'code' => (string) $_GET['code'],
        'redirect_uri' => leasehold_signin_callback(), 'client_id' => $settings['client'], 'client_secret' => $settings['secret'], 'code_verifier' => $verifier]]);
    $user = leasehold_signin_user(leasehold_signin_claims($settings, (string) ($tokens['id_token'] ?? ''), wp_hash($state)));
    wp_set_auth_cookie($user->ID, false);
    do_action('wp_login', $user->user_login, $user);
    wp_safe_redirect(admin_url());
    exit;
}

add_action('login_init', function () {
    $settings = leasehold_signin_settings();
    $what = $settings ? ($_GET['leasehold'] ?? '') : '';
    if ($what === 'signin') {
        leasehold_signin_begin($settings);
    } elseif ($what === 'callback') {
        leasehold_signin_end($settings);
    }
});

add_filter('login_message', function ($message) {
    $link = esc_url(add_query_arg('leasehold', 'signin', site_url('wp-login.php')));
    return leasehold_signin_settings() ? $message . '<p class="message"><a href="' . $link . '">Sign in with your organisation\'s account</a></p>' : $message;
});

// Neither a password of WordPress nor one for programs.
add_filter('wp_authenticate_user', fn($user) => leasehold_signin_is_of_pool($user)
    ? new WP_Error('leasehold', 'Please sign in with your organisation\'s account.') : $user);
add_filter('wp_is_application_passwords_available_for_user', fn($is, $user) => $is && !leasehold_signin_is_of_pool($user), 10, 2);
