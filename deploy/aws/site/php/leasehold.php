<?php
/**
 * Plugin Name: Leasehold
 * Description: Offers the tenant's identity pool (OAuth 2, code flow) on the sign-in page, and the themes of the image.
 */
// SPDX-License-Identifier: Apache-2.0
// leasehold.php - a must-use plugin. Its settings are the option mo_oauth_client_config, written by settle.php: client_id, client_secret, scope,
// authorize_url, token_url, userinfo_url. The pool answers at SITE/callback. A person of the pool becomes the WordPress user with that address; one who is
// new gets the site's default role, and has no other way in than the pool: who was removed from that gets in no more.

defined('ABSPATH') || exit;

const LEASEHOLD_COOKIE = 'leasehold_signin';
const LEASEHOLD_POOL = 'leasehold_pool'; // of a user who came from it

register_theme_directory(ABSPATH . 'themes');

function leasehold_settings(): ?array
{
    $settings = get_option('mo_oauth_client_config');
    return is_array($settings) && !empty($settings['client_id']) ? $settings : null;
}

function leasehold_callback(): string
{
    return home_url('/callback');
}

function leasehold_fail(string $why): never
{
    wp_die(esc_html($why), 'Sign-in', ['response' => 403, 'link_url' => wp_login_url(), 'link_text' => 'Back to the sign-in page']);
}

function leasehold_begin(array $settings): never
{
    $state = wp_generate_password(40, false);
    $verifier = wp_generate_password(64, false);
    $path = ['path' => COOKIEPATH ?: '/', 'httponly' => true, 'samesite' => 'Lax', 'secure' => is_ssl()];
    setcookie(LEASEHOLD_COOKIE, "$state.$verifier", $path + ['expires' => time() + 600]);
    $query = ['response_type' => 'code', 'client_id' => $settings['client_id'], 'redirect_uri' => leasehold_callback(), 'scope' => $settings['scope'],
        'state' => $state, 'code_challenge' => rtrim(strtr(base64_encode(hash('sha256', $verifier, true)), '+/', '-_'), '='), 'code_challenge_method' => 'S256'];
    nocache_headers();
    wp_redirect($settings['authorize_url'] . '?' . http_build_query($query));
    exit;
}

/** A question to the pool, whose answer is an object. */
function leasehold_ask(string $url, array $with): array
{
    $reply = wp_remote_request($url, ['timeout' => 15, 'redirection' => 0] + $with);
    $body = is_wp_error($reply) || wp_remote_retrieve_response_code($reply) !== 200 ? null : json_decode(wp_remote_retrieve_body($reply), true);
    if (!is_array($body)) {
        leasehold_fail('The organisation\'s sign-in did not answer as it should. Please try again.');
    }
    return $body;
}

/** Who it is, in the words of the pool itself, asked over TLS with the token that it gave for the code. */
function leasehold_person(array $settings, string $code, string $verifier): array
{
    $tokens = leasehold_ask($settings['token_url'], ['method' => 'POST', 'body' => ['grant_type' => 'authorization_code', 'code' => $code,
        'redirect_uri' => leasehold_callback(), 'client_id' => $settings['client_id'], 'client_secret' => $settings['client_secret'], 'code_verifier' => $verifier]]);
    $person = leasehold_ask($settings['userinfo_url'], ['method' => 'GET', 'headers' => ['Authorization' => 'Bearer ' . ($tokens['access_token'] ?? '')]]);
    if (empty($person['sub']) || !is_email($person['email'] ?? '') || !in_array($person['email_verified'] ?? '', [true, 'true'], true)) {
        leasehold_fail('The organisation\'s sign-in does not vouch for this address.');
    }
    return $person;
}

function leasehold_user(array $person): WP_User
{
    $user = get_user_by('email', $person['email']);
    if ($user) {
        return $user;
    }
    $name = sanitize_user(strtok($person['email'], '@') . '-' . substr($person['sub'], 0, 6), true);
    $id = wp_insert_user(['user_login' => $name, 'user_email' => $person['email'], 'display_name' => ($person['name'] ?? '') ?: $name,
        'user_pass' => wp_generate_password(48), 'role' => get_option('default_role')]);
    if (is_wp_error($id)) {
        leasehold_fail('There is no room for this person on the site.');
    }
    update_user_meta($id, LEASEHOLD_POOL, '1');
    return get_user_by('id', $id);
}

function leasehold_is_of_pool($user): bool
{
    return $user instanceof WP_User && get_user_meta($user->ID, LEASEHOLD_POOL, true) === '1';
}

function leasehold_end(array $settings): never
{
    [$state, $verifier] = explode('.', (string) ($_COOKIE[LEASEHOLD_COOKIE] ?? '')) + ['', ''];
    setcookie(LEASEHOLD_COOKIE, '', ['path' => COOKIEPATH ?: '/', 'expires' => 1]);
    nocache_headers();
    if ($state === '' || !is_string($_GET['state'] ?? null) || !hash_equals($state, $_GET['state']) || !is_string($_GET['code'] ?? null)) {
        leasehold_fail('This sign-in was not begun here, or too long ago. Please try again.');
    }
    $user = leasehold_user(leasehold_person($settings, $_GET['code'], $verifier));
    wp_set_auth_cookie($user->ID, false);
    do_action('wp_login', $user->user_login, $user);
    wp_safe_redirect(admin_url());
    exit;
}

add_action('login_init', function () {
    $settings = leasehold_settings();
    if ($settings && ($_GET['leasehold'] ?? '') === 'signin') {
        leasehold_begin($settings);
    }
});

add_action('init', function () {
    $settings = leasehold_settings();
    if ($settings && parse_url($_SERVER['REQUEST_URI'] ?? '', PHP_URL_PATH) === parse_url(leasehold_callback(), PHP_URL_PATH)) {
        leasehold_end($settings);
    }
});

add_filter('login_message', function ($message) {
    $link = esc_url(add_query_arg('leasehold', 'signin', site_url('wp-login.php')));
    return leasehold_settings() ? $message . '<p class="message"><a href="' . $link . '">Sign in with your organisation\'s account</a></p>' : $message;
});

// Neither a password of WordPress nor one for programs.
add_filter('wp_authenticate_user', fn($user) => leasehold_is_of_pool($user)
    ? new WP_Error('leasehold', 'Please sign in with your organisation\'s account.') : $user);
add_filter('wp_is_application_passwords_available_for_user', fn($is, $user) => $is && !leasehold_is_of_pool($user), 10, 2);
